"""Gradients that are sent to the other instances while the last step before an update still computes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from torch import Tensor

from pilotage.execution.state import DeviceState
from pilotage.passes.early_exchange import with_early_exchange
from pilotage.program.graphs.rewrites import without_checks
from pilotage.program.graphs.straight_line import straight_line
from pilotage.program.program import Action, Program
from pilotage.program.schedule import Schedule


class EarlySender:
    """Makes the last gradient step before each update send its gradients as soon as they are computed."""

    def __init__(self, program: Program, schedule: Schedule) -> None:
        self._program = program
        self._last = {
            number for number, (_, later) in enumerate(pairwise(schedule.steps)) if later.action is Action.UPDATE
        }
        self._made: dict[bool, Callable[..., list[Tensor]] | None] = {}
        self._state: DeviceState | None = None

    def call(self, number: int, state: DeviceState, *, checked: bool) -> Callable[..., list[Tensor]] | None:
        """The code of a step that sends its gradients early; None if the step runs as usual."""
        if state.exchange is None or number not in self._last:
            return None
        if checked not in self._made:
            self._made[checked] = self._make(checked)
        self._state = state
        return self._made[checked]

    def _make(self, checked: bool) -> Callable[..., list[Tensor]] | None:
        computation = self._program.computations[Action.ACCUMULATE]
        if computation.graph is None:
            return None
        graph = computation.graph if checked else without_checks(computation.graph)
        early = with_early_exchange(computation, graph, self._program.layout, self._begin)
        return None if early is None else straight_line(early)

    def _begin(self, part: slice) -> None:
        assert self._state is not None
        self._state.begin_exchange(part)
