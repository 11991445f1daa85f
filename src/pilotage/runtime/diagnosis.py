"""Handles failed steps: training may continue, or the error names the operation, the line and remedies."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Interpreter, Node

from pilotage.errors import DeviceMemoryError, NonFiniteLossError, PilotageError
from pilotage.events import Listener, Warned
from pilotage.execution.spread_state import ProgramState
from pilotage.execution.walk import StepFailure
from pilotage.options.choices import NonFiniteLoss
from pilotage.program.graphs.source_lines import line_of
from pilotage.program.graphs.straight_line import FILE_NAME
from pilotage.program.step_function import NOT_FINITE
from pilotage.runtime.host import TrainedWeights
from pilotage.runtime.record import RunRecord

_MEMORY_WORDS = ("can't allocate memory", "out of memory", "not enough memory")


_TORN = (
    "The call was interrupted in the middle of an update. The module shows the weights that were last read or sent to "
    "the device. Restore a checkpoint before training continues."
)
"""The warning after an interrupted update."""


@dataclass(frozen=True)
class Failures:
    """Handles the failures of one executor. Executables hold this, so it must not keep the executor alive."""

    nonfinite_loss: NonFiniteLoss
    record: RunRecord
    tell: Listener

    def may_continue(self, failure: StepFailure, error: Exception) -> bool:
        """Whether training continues without checking its losses; warns if it does."""
        if self.nonfinite_loss is not NonFiniteLoss.WARN or not is_nonfinite_loss(error):
            return False
        updates = self.record.updates
        if failure.is_late:
            self.tell(Warned(message=late_notice(failure, updates)))
        else:
            self.tell(Warned(message=f"{explain(failure, error, updates)} Training continues without checks."))
        return True

    def recover(self, error: BaseException, state: ProgramState, trained: TrainedWeights | None) -> None:
        """Count the completed updates of a failed call, and decide which weights the module shows afterwards."""
        if not isinstance(error, StepFailure):
            self.record.updates += state.updates_of_call
        state.updates_of_call = 0
        if state.torn:
            self.tell(Warned(message=_TORN))
        if trained is None:
            return
        if state.torn:
            trained.discard()
        else:
            trained.changed(in_failure=True)

    def explained(self, failure: StepFailure, *, trains: bool) -> BaseException:
        """The error to raise for a failed step; the completed updates of its call count."""
        updates = self.record.updates
        self.record.updates += failure.step.iteration if trains else 0
        cause = failure.__cause__
        if not isinstance(cause, Exception):
            return failure
        explained = explain(failure, cause, updates)
        if explained is None:
            update = updates + failure.step.iteration + 1
            cause.add_note(f"[pilotage] Raised at update {update}, {_running(failure, cause)}.")
        return explained or cause


def is_nonfinite_loss(error: BaseException) -> bool:
    """Whether a step stopped because its loss is NaN or infinite."""
    return NOT_FINITE in str(error)


def late_notice(failure: StepFailure, updates: int) -> str:
    """The warning about a loss that was checked when its step was over."""
    return (
        f"The loss at update {updates + failure.step.iteration + 1} is not finite. {_FOUND_LATE} {_LOSS_ADVICE} "
        "Training continues without checks."
    )


def explain(failure: StepFailure, error: Exception, updates: int) -> PilotageError | None:
    """The error that explains a failed step to the user; None if the original error is clear enough."""
    where = f"at update {updates + failure.step.iteration + 1}"
    if is_nonfinite_loss(error):
        return NonFiniteLossError(f"The loss {where} is not finite. {_first_trouble(failure)} {_LOSS_ADVICE}")
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)) or any(word in str(error) for word in _MEMORY_WORDS):
        asked = str(error).splitlines()[0] if str(error) else "no memory is left"
        return DeviceMemoryError(f"Out of memory {where}, {_running(failure, error)}: {asked} {_MEMORY_ADVICE}")
    return None


def operation(node: Node) -> str:
    """An operation and the line of the user's code that it comes from."""
    line = line_of(node)
    name = str(node.target).removesuffix(".default")
    return f"{name} ({line})" if line else name


_LOSS_ADVICE = (
    "Check the data of this batch, or try a smaller learning rate, gradient clipping, or float32 instead of half "
    "precision. The weights are still those of the previous update."
)
_FOUND_LATE = (
    "Compiled code and pipelines check the loss only after the step: run one process with PILOTAGE_TIER=graph to find "
    "the operation."
)
_MEMORY_ADVICE = (
    "Try a smaller batch with more gradient accumulation, half precision, activation checkpointing, or fewer replicas "
    "on one device."
)


def _first_trouble(failure: StepFailure) -> str:
    graph = failure.computation.graph
    if failure.is_late:
        return _FOUND_LATE
    if graph is None:
        return "The eager tier does not search for the operation; run the graph tier, or step through forward."
    outside = failure.streams.states
    try:
        search = _Search(graph)
        with failure.streams.of_replica(failure.step.replica):
            search.look([argument.clone() for argument in failure.arguments])
    finally:
        failure.streams.states = outside
    return search.verdict()


class _Search(Interpreter):
    """Repeats a step, one operation at a time, and checks every result."""

    def __init__(self, graph: GraphModule) -> None:
        super().__init__(graph)
        self._nan: Node | None = None
        self._infinite: Node | None = None

    def look(self, arguments: Sequence[Tensor]) -> None:
        try:
            self.run(*arguments)
        except RuntimeError as error:
            if not is_nonfinite_loss(error):
                raise

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        for tensor in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(tensor, Tensor) and tensor.is_floating_point() and "empty" not in str(n.target):
                self._note(n, tensor)
        return result

    def _note(self, node: Node, tensor: Tensor) -> None:
        if self._nan is None and bool(torch.isnan(tensor).any()):
            self._nan = node
        elif self._infinite is None and bool(torch.isinf(tensor).any()):
            self._infinite = node

    def verdict(self) -> str:
        if self._nan is None and self._infinite is None:
            return "It did not happen again when the step was repeated one operation at a time."
        found = []
        if self._infinite is not None:
            found.append(f"Infinity first appears in {_named(self._infinite)}.")
        if self._nan is not None:
            found.append(f"NaN first appears in {_named(self._nan)}.")
        return " ".join(found)


def _named(node: Node) -> str:
    return "the inputs or weights of the step" if node.op == "placeholder" else operation(node)


def _running(failure: StepFailure, error: Exception) -> str:
    """The operation that was running when the error occurred, from the line of the generated code."""
    graph = failure.computation.graph
    if graph is None:
        return "in the eager tier"
    nodes = {node.name: node for node in graph.graph.nodes}
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        name = (frame.line or "").split(" = ")[0].strip()
        if frame.filename.startswith(FILE_NAME) and name in nodes:
            return f"in {operation(nodes[name])}"
    return f"in the {failure.step.action.value} step"
