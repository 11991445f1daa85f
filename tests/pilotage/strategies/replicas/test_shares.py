from __future__ import annotations

from itertools import groupby

import torch
from hypothesis import given
from hypothesis import strategies as st

from pilotage.options.batching import Batching
from pilotage.options.choices import OutputMode
from pilotage.program.program import Action
from pilotage.program.schedule import make_schedule
from pilotage.strategies.replicas.shares import cards_for, share_out

CPU = torch.device("cpu")


@given(st.integers(1, 8), st.integers(1, 24))
def test_the_number_of_cards_divides_the_replicas(cards, replicas):
    used = len(cards_for([CPU] * cards, replicas))
    assert replicas % used == 0
    assert not any(replicas % more == 0 for more in range(used + 1, min(cards, replicas) + 1))


@given(
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 4),
    st.integers(1, 3),
    st.sampled_from([OutputMode.ALL, OutputMode.FINAL, OutputMode.SUM]),
    st.booleans(),
)
def test_each_step_of_a_schedule_is_assigned_once(iterations, accumulation, cards, each, mode, trains):
    replicas = cards * each
    batching = Batching(
        device_iterations=iterations, gradient_accumulation=accumulation if trains else 1, replicas=replicas
    )
    schedule = make_schedule(batching, trains=trains, mode=mode, pools=trains)
    shares = share_out(schedule, replicas, [CPU] * cards)
    found = []
    for share in shares:
        assert [step for segment in share.segments for step in segment.steps] == list(share.schedule.steps)
        for step in share.schedule.steps:
            if step.action is Action.UPDATE:
                continue
            result = None if step.result is None else share.results[step.result]
            found.append((step.iteration, step.replica, share.micro_batches[step.micro_batch], result))
    steps = [step for step in schedule.steps if step.action is not Action.UPDATE]
    assert sorted(found, key=str) == sorted(
        ((step.iteration, step.replica, step.micro_batch, step.result) for step in steps), key=str
    )
    assert all(
        [segment.updates for segment in share.segments]
        == [trains and n % 2 == 1 for n in range(2 * iterations if trains else 1)]
        for share in shares
    )
    assert {len(list(group)) for _, group in groupby(shares, lambda share: len(share.replicas))} == {cards}
