"""The update of one stage's weights, and its part of the norm of all gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from pilotage.execution.random_streams import RandomStreams
from pilotage.execution.state import DeviceState
from pilotage.execution.walk import Call
from pilotage.passes.stage_program import StageProgram
from pilotage.program.graphs.straight_line import straight_line
from pilotage.program.layout import VariableValue
from pilotage.program.program import Action


class StageUpdate:
    """Updates the weights of one stage from its pooled gradients."""

    def __init__(self, cut: StageProgram) -> None:
        computation = cut.program.computations[Action.UPDATE]
        assert computation.graph is not None
        self._graph = computation.graph
        self._plan = cut.program.plan
        self._divisor = cut.divisor
        self._sections = computation.sections
        self.use(None)

    def use(self, call: Call | None) -> None:
        """Compute by another function than the graph."""
        self._call = straight_line(self._graph) if call is None else call

    def bounds_norm(self, state: DeviceState) -> bool:
        """Whether the norm of the gradients of all stages together has a limit."""
        return not math.isinf(self._number(state, "max_gradient_norm"))

    @staticmethod
    def norm(state: DeviceState) -> float:
        """The norm of this stage's pooled gradients."""
        pool = state.flat_gradients
        return float(torch.linalg.vector_norm(pool, dtype=torch.float32)) if pool.numel() else 0.0

    @torch.no_grad()
    def clip(self, state: DeviceState, norms: Sequence[float]) -> None:
        """Bound the total norm of the gradients, given the norm of each stage."""
        limit = self._number(state, "max_gradient_norm")
        norm = math.hypot(*norms) / (self._divisor * self._number(state, "loss_scaling"))
        state.flat_gradients.mul_(min(1.0, limit / (norm + 1e-6)))

    @torch.no_grad()
    def run(self, state: DeviceState, streams: RandomStreams, replica: int) -> None:
        """Update the weights from the pooled gradients."""
        with streams.of_replica(replica):
            self._call(*state.arguments(self._sections, replica, whole=True))

    def _number(self, state: DeviceState, name: str) -> float:
        """The current value of an optimizer setting that all groups share."""
        variable = state.values.get(VariableValue(None, name))
        return float(getattr(self._plan, name)) if variable is None else float(variable)
