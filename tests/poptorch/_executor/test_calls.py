"""Warnings about inputs, and the types of outputs."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import poptorch
from poptorch._executor.calls import as_outputs

ONE = torch.ones(2, 3)


def wrapped(function, options=None):
    return poptorch.inferenceModel(function, options)


def test_an_input_that_requires_a_gradient_is_detached_with_a_warning(warnings_of_poptorch):
    model = wrapped(lambda x: x * 2)
    result = model(ONE.clone().requires_grad_())
    assert not result.requires_grad
    assert warnings_of_poptorch() == [
        "Input tensor has requires_grad=True set. This tensor will be detached because backward pass via inputs is not "
        "supported."
    ]


def test_inputs_with_gaps_are_made_dense_with_one_warning(warnings_of_poptorch):
    model = wrapped(lambda x, y: x - y)
    gaps = torch.arange(6.0).reshape(3, 2).t()
    for _ in range(3):
        assert torch.equal(model(gaps, ONE), gaps - ONE)
    (said,) = warnings_of_poptorch()
    assert "not contiguous" in said


def test_a_model_compiled_with_dense_inputs_takes_inputs_with_gaps_later():
    model = wrapped(lambda x: x * 2)
    model(ONE)
    gaps = torch.arange(6.0).reshape(3, 2).t()
    assert torch.equal(model(gaps), gaps * 2)


@pytest.mark.parametrize(
    ("forward", "args", "kwargs"),
    [
        (lambda table: table["a"], ({"a": ONE},), {}),
        (lambda pair: pair[1]["a"], ((ONE, {"a": ONE}),), {}),
        (lambda x, *, table: x + table["a"], (ONE,), {"table": {"a": ONE}}),
    ],
)
def test_dictionaries_give_one_warning_at_compilation(forward, args, kwargs, warnings_of_poptorch):
    model = wrapped(forward)
    model(*args, **kwargs)
    (said,) = warnings_of_poptorch()
    assert "Dictionaries have partial support" in said
    model(*args, **kwargs)
    assert len(warnings_of_poptorch()) == 1


def test_pure_keyword_arguments_raise_no_warning(warnings_of_poptorch):
    wrapped(lambda **tensors: tensors["a"])(a=ONE)
    assert warnings_of_poptorch() == []


@pytest.mark.parametrize(
    ("given", "returned"),
    [
        (torch.int64, torch.int32),
        (torch.float64, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float16, torch.float16),
        (torch.int32, torch.int32),
        (torch.int16, torch.int16),
        (torch.uint8, torch.uint8),
        (torch.bool, torch.bool),
    ],
)
def test_outputs_come_back_in_the_types_of_the_device(given, returned):
    values = torch.tensor([0, 1, 1]).to(given)
    model = wrapped(lambda x: (x, torch.cat([x, x])))
    for _ in range(2):
        whole, twice = model(values)
        assert whole.dtype == twice.dtype == returned
        assert whole.tolist() == values.tolist()


def test_wide_floats_are_computed_in_32_bits():
    model = wrapped(lambda x: x + 2.0**-40)
    assert model(torch.ones(1, dtype=torch.float64)).item() == 1.0


def test_integers_created_in_forward_come_back_as_int32():
    assert wrapped(lambda x: x.argmax(dim=1))(ONE).dtype == torch.int32


def refused():
    return pytest.raises(
        poptorch.Error, match="backward\\(\\) cannot be called explicitly on outputs of a PopTorch model"
    )


def test_backward_of_an_output_is_refused():
    first, (second,) = wrapped(lambda x: (x.sum(), [x.sum()]))(ONE)
    for output in (first, second):
        with refused():
            output.backward()
        with refused():
            output.backward(torch.ones(()), retain_graph=True)


def test_backward_of_a_training_output_is_refused():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 1)

        def forward(self, x):
            return poptorch.identity_loss(self.layer(x), "mean")

    with refused():
        poptorch.trainingModel(Model())(ONE).backward()


def test_only_the_output_refuses_backward_and_not_its_source():
    tensor = torch.ones(2, dtype=torch.int64)
    as_outputs([tensor])
    assert "backward" not in vars(tensor)
    outside = torch.ones(2)
    with pytest.warns(UserWarning, match="Output expected to be on the IPU but is on cpu"):
        wrapped(lambda x: (x, outside))(ONE)
    assert "backward" not in vars(outside)


# Inputs that forward changes


def add_one(x):
    x.add_(1)
    return x * 2


@pytest.mark.parametrize("iterations", [1, 3])
def test_changes_of_an_input_are_written_back(iterations):
    given = torch.arange(6.0).reshape(6, 1)
    model = wrapped(add_one, poptorch.Options().deviceIterations(iterations))
    for calls in (1, 2):
        result = model(given)
        assert torch.equal(given, torch.arange(6.0).reshape(6, 1) + calls)
        assert torch.equal(result, given * 2)


def test_changes_are_written_back_into_other_types_and_layouts():
    for given in (
        torch.zeros(2, dtype=torch.float64),
        torch.zeros(2, dtype=torch.bfloat16),
        torch.zeros(3, 2).t(),
        torch.zeros(4)[::2],
        torch.zeros(2, requires_grad=True),
    ):
        wrapped(add_one)(given)
        assert torch.equal(given.detach().float(), torch.ones(given.shape))


def test_inputs_that_forward_does_not_change_stay_the_same():
    kept, changed = torch.zeros(2), torch.zeros(2)

    def forward(x, y):
        x = x + 1
        y += x
        return y

    wrapped(forward)(kept, changed)
    assert (kept.tolist(), changed.tolist()) == ([0.0, 0.0], [1.0, 1.0])


def test_changes_in_training_are_written_back():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 1)

        def forward(self, x, seen):
            seen.add_(x.sum(dim=1, keepdim=True))
            return poptorch.identity_loss(self.layer(x), "mean")

    seen = torch.zeros(2, 1)
    poptorch.trainingModel(Model())(ONE, seen)
    assert seen.tolist() == [[3.0], [3.0]]
