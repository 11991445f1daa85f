from __future__ import annotations

import torch

from pilotage.events import StepsRun
from pilotage.options.batching import Batching
from pilotage.options.choices import OutputMode
from pilotage.program.schedule import make_schedule
from pilotage.runtime.record import RunRecord


def test_calls_are_counted_by_the_device_and_tier_that_ran_them():
    record = RunRecord()
    assert str(record) == "0 calls, 0 updates; steps: none"
    long = make_schedule(Batching(device_iterations=2, gradient_accumulation=3), trains=True, mode=OutputMode.FINAL)
    short = make_schedule(Batching(), trains=True, mode=OutputMode.FINAL)
    done = [record.count(*how, seconds=0.5) for how in (("cpu", "graph", long), ("cpu", "graph", long))]
    assert done == [StepsRun(device="cpu", tier="graph", micro_batches=6, updates=2, seconds=0.5)] * 2
    record.count("cuda:0", "graph", short, seconds=0.1)
    assert (record.calls, record.updates) == (3, 5)
    assert record.steps == {("cpu", "graph"): 12, ("cuda:0", "graph"): 1}
    assert str(record) == "3 calls, 5 updates; steps: 12 on cpu (graph), 1 on cuda:0 (graph)"


def test_a_program_records_what_it_ran(pair):
    trained = pair(device_iterations=3, gradient_accumulation=2)
    for _ in range(2):
        trained.step(torch.randn(12, 4))
    record = trained.step.record
    assert (record.calls, record.updates, record.compilations) == (2, 6, 1)
    assert record.steps == {("cpu", "graph"): 12}
