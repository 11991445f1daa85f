"""Which values of an anchored tensor are kept, and when a program has to return it."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import poptorch
from pilotage.options.batching import Batching
from pilotage.program.graphs import labels
from poptorch import OutputMode
from poptorch._observation.anchors import Anchors, chosen
from poptorch._options.execution import execution_of, resolved

COUNTS = st.integers(1, 3)


def anchors(options, *, training=True):
    return Anchors(resolved(options, training=training), execution_of(options, training=training))


def reference(pieces, mode, period, batching):
    """The kept pieces, by the loops of a call."""
    loops = product(range(batching.device_iterations), range(batching.gradient_accumulation), range(batching.replicas))
    by_loop = dict(zip(loops, pieces, strict=True))
    last = batching.device_iterations - 1, batching.gradient_accumulation - 1
    match mode:
        case OutputMode.Final:
            return [piece for (*loop, _), piece in by_loop.items() if tuple(loop) == last]
        case OutputMode.EveryN:
            return [piece for (iteration, _, _), piece in by_loop.items() if (iteration + 1) % period == 0]
        case OutputMode.Sum:
            replicas = range(batching.replicas)
            return [sum(piece for (*_, each), piece in by_loop.items() if each == replica) for replica in replicas]
        case _:
            return list(pieces)


@given(st.sampled_from([OutputMode.All, OutputMode.Final, OutputMode.Sum, OutputMode.EveryN]), COUNTS, COUNTS, COUNTS)
def test_a_mode_keeps_what_the_loops_of_a_call_say(mode, iterations, accumulation, replicas):
    batching = Batching(device_iterations=iterations, gradient_accumulation=accumulation, replicas=replicas)
    count = iterations * accumulation * replicas
    for rank, pieces in ((1, torch.arange(2.0 * count).split(2)), (0, torch.arange(float(count)).unbind())):
        everything = torch.cat(pieces) if rank else torch.stack(pieces)
        if count == 1:
            everything = pieces[0]
        kept = reference(pieces, mode, iterations, batching)
        found = chosen(everything, rank, mode, iterations, batching)
        expected = torch.cat(kept) if rank else kept[0] if len(kept) == 1 else torch.stack(kept)
        if mode is OutputMode.All and count > 1:
            expected = everything
        torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_truth_values_are_summed_by_or():
    batching = Batching(device_iterations=2)
    found = chosen(torch.tensor([True, False]), 0, OutputMode.Sum, 1, batching)
    assert found.dtype is torch.bool
    assert bool(found)


def test_without_anchors_there_is_nothing_to_take():
    plain = anchors(poptorch.Options())
    assert not plain.are_taken
    assert plain.labels == ()


def test_an_anchored_tensor_and_a_watch_for_exceptions_are_returned_by_the_program():
    options = poptorch.Options()
    options.anchorTensor("mine", "fc/addmm")
    one = anchors(options)
    assert one.are_taken
    assert len(one.labels) == 1
    options.Precision.enableFloatingPointExceptions(True)
    both = anchors(options)
    assert both.are_taken
    assert both.labels == (*one.labels, labels.EXCEPTIONS)


def test_what_an_update_makes_is_read_afterwards_where_updates_are_separate():
    options = poptorch.Options()
    options.anchorTensor("new", "UpdatedVar___fc.weight")
    assert len(anchors(options).labels) == 1
    options.Training.gradientAccumulation(2)
    assert anchors(options).labels == ()


def test_only_the_last_of_several_separate_updates_can_be_read():
    options = poptorch.Options().deviceIterations(2)
    options.Training.gradientAccumulation(2)
    options.anchorTensor("new", "UpdatedVar___fc.weight", OutputMode.All)
    with pytest.raises(poptorch.Error, match=r"only its value after the last device iteration.*OutputMode\.Final"):
        _ = anchors(options).labels


def test_a_value_exists_once_its_tensor_is_anchored_and_the_model_has_run():
    options = poptorch.Options()
    options.anchorTensor("mine", "fc/addmm")
    taken = anchors(options)
    with pytest.raises(AssertionError, match="No tensor is anchored as 'yours'"):
        taken.value("yours")
    with pytest.raises(AssertionError, match="has not been run since 'mine' was anchored"):
        taken.value("mine")


@pytest.mark.parametrize("accumulation", [1, 2])
def test_the_final_loss_scale_is_the_initial_one_times_the_factor_before_the_run(accumulation):
    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 2).half()

        def forward(self, x):
            return poptorch.identity_loss(self.layer(x), "sum")

    module = Half()
    options = poptorch.Options()
    options.Training.gradientAccumulation(accumulation).setAutomaticLossScaling(True)
    options.anchorTensor("scale", "finalLossScale", poptorch.OutputMode.Final)
    optimizer = poptorch.optim.SGD(module.parameters(), lr=0.001, loss_scaling=8.0)
    model = poptorch.trainingModel(module, options, optimizer)
    x = torch.ones(2 * accumulation, 3).half()
    model.compile(x)
    scales = []
    for _ in range(3):
        factor = optimizer.state_dict()["ipu_state"]["lossScaleUpdateFactor"]
        model(x)
        scales.append(model.getAnchoredTensor("scale").item())
        assert scales[-1] == 8.0 * factor.item()
    assert scales[0] != scales[1]
    assert "finalLossScale" in model.getTensorNames()
