"""The types that a device computes in."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import poptorch
from poptorch._executor.calls import as_outputs
from poptorch._executor.types_on_device import input_conversions

FLOATS = {torch.float64: torch.float32, torch.bfloat16: torch.float32}
KEPT = (torch.float32, torch.float16, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)


def as_device_input(tensor, module=None):
    """An input as a call of a module gives it to the program."""
    convert = input_conversions(module or nn.Linear(2, 2)).get(tensor.dtype)
    return tensor if convert is None else convert(tensor)


def as_device_output(tensor):
    (output,) = as_outputs([tensor])
    return output


@pytest.mark.parametrize(("given", "expected"), FLOATS.items())
def test_unsupported_float_inputs_become_float32(given, expected):
    tensor = torch.tensor([0.5, -2.0], dtype=given)
    assert as_device_input(tensor).dtype == expected
    assert torch.equal(as_device_input(tensor), tensor.float())


@pytest.mark.parametrize("kind", [torch.int64, torch.float64, torch.bfloat16])
def test_unsupported_output_types_become_32_bits(kind):
    tensor = torch.tensor([1, -2], dtype=kind)
    narrow = as_device_output(tensor)
    assert narrow.dtype.itemsize == 4
    assert narrow.tolist() == tensor.tolist()


@pytest.mark.parametrize("kind", KEPT)
def test_other_tensors_are_not_converted(kind):
    tensor = torch.ones(2, dtype=kind)
    assert as_device_input(tensor) is tensor
    assert as_device_output(tensor) is tensor


def test_integer_inputs_keep_their_width():
    tensor = torch.ones(2, dtype=torch.int64)
    assert as_device_input(tensor) is tensor


class Regression(nn.Linear):
    """A layer and its loss."""

    def forward(self, inputs, targets):
        outputs = super().forward(inputs)
        return outputs, nn.functional.mse_loss(outputs, targets)


@pytest.mark.parametrize("kind", FLOATS)
def test_a_model_with_weights_of_an_unsupported_type_trains_as_in_eager(kind):
    torch.manual_seed(0)
    model, twin = Regression(4, 3).to(kind), Regression(4, 3).to(kind)
    twin.load_state_dict(model.state_dict())
    inputs, targets = torch.randn(5, 4, dtype=kind), torch.randn(5, 3, dtype=kind)
    training = poptorch.trainingModel(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
    outputs, loss = training(inputs, targets)
    expected, expected_loss = twin(inputs, targets)
    expected_loss.backward()
    torch.optim.SGD(twin.parameters(), lr=0.1).step()
    assert outputs.dtype == loss.dtype == torch.float32
    torch.testing.assert_close(outputs, expected.float())
    torch.testing.assert_close(loss, expected_loss.float())
    torch.testing.assert_close(model.weight, twin.weight)


def test_with_weights_of_several_types_inputs_become_float32():
    model = nn.ModuleDict({"narrow": nn.Linear(2, 2), "wide": nn.Linear(2, 2).double()})
    assert as_device_input(torch.ones(2, dtype=torch.float64), model).dtype == torch.float32
