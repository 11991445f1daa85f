"""What one call of an executor costs beyond the graph that it runs."""

from __future__ import annotations

import torch
from torch import nn

import poptorch
from benchmarks.contest import Contender, take_turns
from benchmarks.report import Row, Table
from pilotage.program.straight_line import straight_line

CALLS = 500
PARAMETERS = 100


def measure(device: str, rounds: int) -> Table:
    """Microseconds per call of the wrapper and of the bare graph, for a model with 100 small parameters."""
    torch.set_num_threads(1)
    model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(PARAMETERS // 2))).eval()
    wrapped = poptorch.inferenceModel(model, poptorch.Options().runOn(device).showCompilationProgressBar(False))
    inputs = torch.randn(4, 4)
    wrapped(inputs)
    session = wrapped.engine.session
    computation = next(iter(session.program.computations.values()))
    state = session.attached.arguments(computation.sections, 0)
    moved = inputs.to(session.attached.device)
    graph = straight_line(computation.graph)

    def through_wrapper() -> int:
        for _ in range(CALLS):
            wrapped(inputs)
        return CALLS

    def through_graph() -> int:
        for _ in range(CALLS):
            graph(*state, moved)
        return CALLS

    contenders = [Contender("bare graph", through_graph), Contender("wrapped model", through_wrapper)]
    take_turns(contenders, rounds)
    bare, whole = (1e6 / each.median for each in contenders)
    return Table(
        title=f"One call, {PARAMETERS} parameters, on {device}",
        command=f"make bench DEVICE={device} ARGS='--only call_overhead'",
        rows=[Row("bare graph", bare, "µs"), Row("wrapped model", whole, "µs"), Row("overhead", whole - bare, "µs")],
        verdict=f"A call costs {whole - bare:.0f} µs beyond the captured graph.",
    )
