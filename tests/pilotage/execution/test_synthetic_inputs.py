from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from pilotage.execution.synthetic_inputs import SyntheticInputs
from pilotage.options.batching import Batching
from pilotage.options.execution import Execution
from pilotage.runtime.executor import Executor


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.layer = nn.Embedding(5, 3), nn.Linear(3, 4)

    def forward(self, words, x, labels, mask):
        output = self.layer(self.embed(words) * mask.unsqueeze(1) + x)
        return output, functional.cross_entropy(output, labels)


def test_synthetic_inputs_are_the_same_at_each_call():
    batch = [torch.tensor([4, 9]), torch.full((2, 3), torch.nan), torch.tensor([-7, 99]), torch.tensor([True, True])]
    executor = Executor(Classifier(), execution=Execution(synthetic_inputs=True))
    output, loss = executor(*batch)
    assert torch.isfinite(loss)
    again, _ = executor(torch.ones(2, dtype=torch.int64), torch.ones(2, 3), *batch[2:])
    assert torch.equal(output, again)


def test_outputs_are_computed_from_synthetic_inputs_of_the_real_shape():
    executor = Executor(
        nn.Identity(), execution=Execution(synthetic_inputs=True, batching=Batching(device_iterations=3))
    )
    given = torch.zeros(6, 50)
    output = executor(given)
    assert output.shape == given.shape
    assert 0.8 < float(output.std()) < 1.2
    assert not given.any()


def test_writes_to_synthetic_inputs_stay_on_the_device():
    class Counting(nn.Module):
        def forward(self, x):
            x.add_(1)
            return x.sum()

    given = torch.zeros(3)
    Executor(Counting(), execution=Execution(synthetic_inputs=True))(given)
    assert not given.any()


def test_synthetic_inputs_do_not_advance_torchs_generator():
    before = torch.get_rng_state()
    SyntheticInputs().instead_of([torch.ones(3)], torch.device("cpu"))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float64, torch.complex64, torch.int8, torch.bool]
)
def test_synthetic_inputs_can_have_any_type(dtype):
    (made,) = SyntheticInputs().instead_of([torch.ones(2, 3, dtype=dtype)], torch.device("cpu"))
    assert (made.dtype, made.shape) == (dtype, (2, 3))
    assert bool(made.any()) is (dtype.is_floating_point or dtype.is_complex)
