"""The overhead of one call of an executor beyond the graph that it runs."""

from __future__ import annotations

import statistics

import torch
from torch import nn

import poptorch
from benchmarks.comparison import Contender, alternate
from benchmarks.report import Row, Table
from pilotage.program.graphs.straight_line import straight_line

CALLS = 50
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
    # Short rounds and differences of neighbours, so that disturbances affect both equally.
    alternate(contenders, 20 * rounds)
    times = [[1e6 / rate for rate in each.rates] for each in contenders]
    bare, whole = map(statistics.median, times)
    overhead = statistics.median(wrapped - plain for plain, wrapped in zip(*times, strict=True))
    return Table(
        title=f"One call, {PARAMETERS} parameters, on {device}",
        command=f"make bench DEVICE={device} ARGS='--only call_overhead'",
        rows=[Row("bare graph", bare, "µs"), Row("wrapped model", whole, "µs"), Row("overhead", overhead, "µs")],
        verdict=f"A call adds {overhead:.0f} µs to the captured graph.",
    )
