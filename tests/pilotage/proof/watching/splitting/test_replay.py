"""A recorded forward pass on batches of exchanged halves."""

import pytest
import torch
from torch.nn import functional

from pilotage.proof.watching.splitting.forward_record import ForwardRecord
from pilotage.proof.watching.splitting.replay import Replay

WEIGHT = torch.randn(5, 3, generator=torch.Generator().manual_seed(1))


def replayed(forward, *, wide=True, dim=0, shape=(8, 5)):
    inputs = torch.randn(*shape, generator=torch.Generator().manual_seed(0))
    with ForwardRecord() as record:
        loss = forward(inputs)
    return Replay(record.operations, shape[dim], loss, frozenset(), {id(inputs): dim}, wide=wide).first_dependence()


@pytest.mark.parametrize("wide", [True, False])
def test_an_operation_across_the_batch_is_the_first_dependence(wide):
    found = replayed(lambda x: functional.softmax(x @ WEIGHT, dim=0).square().mean(), wide=wide)
    assert found is not None
    assert "softmax" in found.name


@pytest.mark.parametrize("wide", [True, False])
def test_a_loss_that_is_a_sum_over_samples_depends_on_no_split(wide):
    assert replayed(lambda x: functional.softmax(x @ WEIGHT, dim=1).square().mean(), wide=wide) is None


def test_the_batch_may_be_another_dimension():
    assert replayed(lambda x: functional.softmax(x, dim=0).square().mean(), dim=1, shape=(5, 8)) is None
    assert replayed(lambda x: functional.softmax(x, dim=1).square().mean(), dim=1, shape=(5, 8)) is not None


def test_what_the_loss_does_not_depend_on_is_not_reported():
    def forward(x):
        functional.softmax(x, dim=0)
        return (x @ WEIGHT).square().mean()

    assert replayed(forward) is None


def test_the_tensors_of_the_script_keep_their_values():
    inputs = torch.randn(8, 5)
    before = inputs.clone()
    with ForwardRecord() as record:
        loss = (inputs * 2).relu_().softmax(0).square().mean()
    value = loss.clone()
    Replay(record.operations, 8, loss, frozenset(), {id(inputs): 0}, wide=True).first_dependence()
    assert torch.equal(inputs, before)
    assert torch.equal(loss, value)
