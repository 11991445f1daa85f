"""The time of ways, and the choice of one."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import torch

from pilotage.compiler.worker.ways import Way, _refuse_other_layouts, choose, measure
from pilotage.compiler.wrapper import NotSelfContained
from pilotage.options.choices import Tier
from pilotage.program.program import Action

GRAPH, COMPILED = Way(Tier.GRAPH, channels_last=False), Way(Tier.COMPILED, channels_last=False)
STORED = Way(Tier.COMPILED, channels_last=True)


class Job:
    must_compile = False


class Insisting(Job):
    must_compile = True


@pytest.mark.parametrize(
    ("seconds", "job", "chosen"),
    [
        ({GRAPH: 1.0, COMPILED: 0.5}, Job, COMPILED),
        ({GRAPH: 1.0, COMPILED: 0.5, STORED: 0.4}, Job, STORED),
        ({GRAPH: 1.0, COMPILED: 0.99}, Job, GRAPH),
        ({GRAPH: 1.0, COMPILED: 2.0}, Job, GRAPH),
        ({GRAPH: 1.0, COMPILED: 2.0}, Insisting, COMPILED),
        ({GRAPH: 1.0}, Insisting, GRAPH),
    ],
)
def test_the_fastest_candidate_is_used_if_it_gains_enough(seconds, job, chosen):
    assert choose(seconds, job) == chosen


def test_cpu_timing_runs_in_the_thread_with_normal_priority():
    seen = []

    class Noted:
        def run(self):
            seen.append(threading.current_thread().name)

    class OnProcessor(Job):
        device = torch.device("cpu")
        threads = 1

    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="clock") as clock:
        seconds = measure({GRAPH: Noted()}, OnProcessor, clock)
    assert list(seconds) == [GRAPH]
    assert {name.split("_")[0] for name in seen} == {"clock"}


class Returning:
    """A trial of a stage whose forward returns this tensor."""

    def __init__(self, tensor, *actions):
        self.tensor = tensor
        self.program = SimpleNamespace(computations=dict.fromkeys(actions or (Action.FORWARD, Action.BACKWARD)))

    def fresh_copy(self):
        return self

    def results(self, action):
        return [self.tensor]


def test_code_that_keeps_values_in_another_layout_than_the_graph_is_refused():
    kept = torch.randn(3, 4)
    _refuse_other_layouts(Returning(kept), Returning(kept.clone()))
    # Only views, for example, of which a compiler gets nothing.
    for action in (Action.TRAIN, Action.BACKWARD):
        _refuse_other_layouts(Returning(kept, action), Returning(kept.t(), action))
    with pytest.raises(NotSelfContained, match="another memory layout"):
        _refuse_other_layouts(Returning(kept), Returning(kept.t().contiguous().t()))
