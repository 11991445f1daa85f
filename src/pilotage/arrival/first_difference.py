"""Which module is the first whose output differs between a program and eager PyTorch.

Hooks note the output of every module. In eager PyTorch they see values; while the module is captured once more they
label the values in the graph, which then runs one operation at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import Interpreter, Node

from pilotage.arrival.comparison import distance
from pilotage.arrival.reference import Start
from pilotage.execution.state import DeviceState
from pilotage.program.graphs.labels import label, labels_of
from pilotage.program.graphs.source_lines import current_line
from pilotage.program.program import Action, Program
from pilotage.torch_private import tree_leaves

_PREFIX = "output of module "
_FACTOR = 8.0
"""Differences up to this many times the effect of other rounding are explained by rounding."""


@dataclass(kw_only=True)
class ModuleOutputs:
    """The outputs of modules in the order in which their calls ended."""

    values: dict[str, Tensor] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    """Each module with its type and the line that called it."""

    @contextmanager
    def noted(self, module: nn.Module) -> Iterator[None]:
        """Note what the modules inside this one return in the block."""

        def note(key: str, tensor: Tensor, place: str) -> None:
            if key not in self.values:
                self.values[key], self.places[key] = tensor.detach().clone(), place

        with _hooks(module, note):
            yield


@contextmanager
def labelled(module: nn.Module) -> Iterator[None]:
    """Label the outputs of all modules in graphs that are captured in the block."""
    with _hooks(module, lambda key, tensor, place: label(tensor, _PREFIX + key)):
        yield


@contextmanager
def _hooks(module: nn.Module, note: Callable[[str, Tensor, str], None]) -> Iterator[None]:
    counts: dict[str, int] = {}

    def hook_of(name: str) -> Callable[..., None]:
        def hook(part: nn.Module, arguments: Any, output: Any) -> None:
            number = counts[name] = counts.get(name, 0) + 1
            line = current_line()
            place = f"{name or 'the model itself'} ({type(part).__name__}){f', called at {line}' if line else ''}"
            for position, tensor in enumerate(tree_leaves(output)):
                if isinstance(tensor, Tensor):
                    note(f"{name} call {number} tensor {position}", tensor, place)

        return hook

    handles = [part.register_forward_hook(hook_of(name)) for name, part in module.named_modules()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def outputs_in_program(
    program: Program, start: Start, inputs: Sequence[Tensor], device: torch.device
) -> dict[str, Tensor]:
    """What the modules compute in a program that was captured with `labelled`, for its first micro-batch."""
    computation = next(iter(program.computations.values()))
    if computation.graph is None:
        return {}
    pools = Action.UPDATE in program.computations
    state = DeviceState(program.layout, program.plan, device, 1, pools)
    state.load_weights(start.parameters, next(iter(start.buffers.values())))
    arguments = state.arguments(computation.sections, 0, whole=computation.whole)
    notes = _Notes(computation.graph)
    notes.run(*arguments, *(each.to(device) for each in inputs))
    return notes.found


class _Notes(Interpreter):
    def __init__(self, graph: torch.fx.GraphModule) -> None:
        super().__init__(graph)
        self.found: dict[str, Tensor] = {}

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        for name in labels_of(n):
            if name.startswith(_PREFIX) and isinstance(result, Tensor):
                self.found[name.removeprefix(_PREFIX)] = result.detach().clone()
        return result


def first_difference(
    expected: ModuleOutputs, other_rounding: ModuleOutputs, found: Mapping[str, Tensor], tolerance: float
) -> str | None:
    """The first module whose output differs by more than rounding; None if all agree."""
    for key, value in expected.values.items():
        if key not in found:
            continue
        explained = tolerance
        if key in other_rounding.values:
            explained += _FACTOR * distance(other_rounding.values[key], value)
        if not distance(found[key], value) <= explained:
            return expected.places[key]
    return None
