"""What PopTorch logs about the arguments and outputs of a call."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, NoReturn

from torch import Tensor

from pilotage.engine import BoundCall, Program, Structure, Table, split_arguments
from poptorch._errors import createPoptorchError
from poptorch._executor.types_on_device import NARROWER_OUTPUTS
from poptorch._logging import logger

__all__ = ["InputAdvice", "as_outputs", "warn_of_host_outputs"]

_REFUSAL = (
    "backward() cannot be called explicitly on outputs of a PopTorch model. If you're using a trainingModel, the "
    "backwards pass is performed automatically when invoking the model: leave out loss.backward(), "
    "optimizer.zero_grad() and optimizer.step(). If you're using an inferenceModel, use a trainingModel instead."
)


class InputAdvice:
    """Warns once per model about inputs that have to be converted for the device."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def on(self, call: BoundCall) -> None:
        """Check the inputs of a call."""
        for tensor in call.tensors:
            if tensor.requires_grad:
                self._say(
                    "Input tensor has requires_grad=True set. This tensor will be detached because backward pass via "
                    "inputs is not supported."
                )
            if not tensor.is_contiguous():
                self._say("At least one input tensor is not contiguous: contiguous copies are made at each call.")

    def on_compilation(self, call: BoundCall) -> None:
        """Check the call that a model is compiled for."""
        positional, named = split_arguments(call.arguments)
        if any(map(_holds_table, (*positional.items, *named.items))):
            self._say(
                "Dictionaries have partial support as inputs: their keys are compiled in, and all later calls have "
                "to use "
                "the same ones."
            )

    def _say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            logger.warning(text)


def warn_of_host_outputs(program: Program) -> None:
    """Warn of outputs that forward only passes on, and that were never on the device."""
    for computation in program.computations.values():
        if computation.graph is None:
            return
        output = next(node for node in computation.graph.graph.nodes if node.op == "output")
        for result in output.args[0]:
            if result.op == "get_attr":
                warnings.warn("Output expected to be on the IPU but is on cpu", stacklevel=2)


def as_outputs(tensors: Iterable[Tensor]) -> list[Tensor]:
    """Outputs in the types that come back from the device; their ``backward`` raises."""
    outputs = []
    for tensor in tensors:
        narrower = NARROWER_OUTPUTS.get(tensor.dtype)
        output = tensor if narrower is None else tensor.to(narrower)
        output.backward = _refuse_backward  # type: ignore[method-assign]
        outputs.append(output)
    return outputs


def _refuse_backward(*args: Any, **kwargs: Any) -> NoReturn:
    raise createPoptorchError(_REFUSAL)


def _holds_table(structure: Structure) -> bool:
    return isinstance(structure, Table) or any(map(_holds_table, getattr(structure, "items", ())))
