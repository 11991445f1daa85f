"""The schedule compared with explicit loops."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotage.options.batching import Batching
from pilotage.options.choices import OutputMode, ReplicaGrouping
from pilotage.program.program import Action
from pilotage.program.schedule import make_schedule

counts = st.integers(1, 5)


@st.composite
def batchings(draw):
    shared = draw(st.integers(1, 3))
    return Batching(
        device_iterations=draw(counts),
        gradient_accumulation=draw(counts),
        replicas=shared * draw(st.integers(1, 3)),
        replicas_per_input=shared,
        input_grouping=draw(st.sampled_from(ReplicaGrouping)),
    )


def described(batching, trains):
    """What happens in a call, as (what, iteration, accumulation, replica, which part of the inputs)."""
    feeds = batching.replicas // batching.replicas_per_input
    part = 0
    for iteration in range(batching.device_iterations):
        for accumulation in range(batching.gradient_accumulation):
            for replica in range(batching.replicas):
                consecutive = batching.input_grouping is ReplicaGrouping.CONSECUTIVE
                own = replica // batching.replicas_per_input if consecutive else replica % feeds
                yield "run", iteration, accumulation, replica, part + own
            part += feeds
        if trains:
            yield "update", iteration, None, None, None


def kept(batching, mode, period, iteration, accumulation):
    match mode:
        case OutputMode.ALL | OutputMode.SUM:
            return True
        case OutputMode.EVERY_N:
            return iteration % period == period - 1
        case OutputMode.FINAL:
            return (iteration, accumulation) == (batching.device_iterations - 1, batching.gradient_accumulation - 1)


@given(batchings(), st.booleans(), st.sampled_from(OutputMode), counts)
def test_a_schedule_lists_the_steps_of_all_loops(batching, trains, mode, period):
    schedule = make_schedule(batching, trains=trains, mode=mode, period=period)
    pools = batching.gradient_accumulation * batching.replicas > 1
    expected, place = [], 0
    for what, iteration, accumulation, replica, part in described(batching, trains):
        if what == "update":
            if pools:
                expected.append((Action.UPDATE, iteration, 0, None, None))
            continue
        action = Action.INFER if not trains else Action.ACCUMULATE if pools else Action.TRAIN
        result = None
        if kept(batching, mode, period, iteration, accumulation):
            result = replica if mode in (OutputMode.SUM, OutputMode.FINAL) else place
            place += 1
        expected.append((action, iteration, replica, part, result))
    assert [(s.action, s.iteration, s.replica, s.micro_batch, s.result) for s in schedule.steps] == expected


@given(batchings(), st.booleans(), st.sampled_from(OutputMode), counts)
def test_every_part_of_the_inputs_is_read_and_every_result_is_written(batching, trains, mode, period):
    schedule = make_schedule(batching, trains=trains, mode=mode, period=period)
    reads = {step.micro_batch for step in schedule.steps if step.micro_batch is not None}
    writes = [step.result for step in schedule.steps if step.result is not None]
    assert reads == set(range(schedule.micro_batches))
    assert set(writes) == set(range(schedule.results))
    if not schedule.sums:
        assert len(writes) == schedule.results
    assert schedule.sums == (mode is OutputMode.SUM)


@given(batchings(), st.sampled_from(OutputMode))
def test_weights_change_once_in_each_device_iteration_of_training(batching, mode):
    training = make_schedule(batching, trains=True, mode=mode)
    assert training.updates == batching.device_iterations
    updating = [step for step in training.steps if step.action in (Action.UPDATE, Action.TRAIN)]
    assert [step.iteration for step in updating] == list(range(batching.device_iterations))
    assert make_schedule(batching, trains=False, mode=mode).updates == 0
