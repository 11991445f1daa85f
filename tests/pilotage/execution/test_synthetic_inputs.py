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


def test_made_up_inputs_are_the_same_at_each_call_whatever_the_host_sends():
    batch = [torch.tensor([4, 9]), torch.full((2, 3), torch.nan), torch.tensor([-7, 99]), torch.tensor([True, True])]
    executor = Executor(Classifier(), execution=Execution(synthetic_inputs=True))
    output, loss = executor(*batch)
    assert torch.isfinite(loss)
    again, _ = executor(torch.ones(2, dtype=torch.int64), torch.ones(2, 3), *batch[2:])
    assert torch.equal(output, again)


def test_outputs_follow_from_the_made_up_inputs_and_have_the_shape_of_real_ones():
    executor = Executor(
        nn.Identity(), execution=Execution(synthetic_inputs=True, batching=Batching(device_iterations=3))
    )
    given = torch.zeros(6, 50)
    output = executor(given)
    assert output.shape == given.shape
    assert 0.8 < float(output.std()) < 1.2
    assert not given.any()


def test_what_forward_writes_into_its_inputs_stays_on_the_device():
    class Counting(nn.Module):
        def forward(self, x):
            x.add_(1)
            return x.sum()

    given = torch.zeros(3)
    Executor(Counting(), execution=Execution(synthetic_inputs=True))(given)
    assert not given.any()


def test_making_inputs_up_leaves_torchs_random_numbers_as_they_are():
    before = torch.get_rng_state()
    SyntheticInputs().instead_of([torch.ones(3)], torch.device("cpu"))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float64, torch.complex64, torch.int8, torch.bool]
)
def test_every_type_can_be_made_up(dtype):
    (made,) = SyntheticInputs().instead_of([torch.ones(2, 3, dtype=dtype)], torch.device("cpu"))
    assert (made.dtype, made.shape) == (dtype, (2, 3))
    assert bool(made.any()) is (dtype.is_floating_point or dtype.is_complex)
