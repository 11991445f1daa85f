"""The parameters, buffers and submodules of the user's module: swapped for a run, and checked for shared memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import combinations
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import GraphModule

from pilotage.errors import CaptureError
from pilotage.program.layout import StateLayout
from pilotage.torch_private import storage_address

_KINDS = {"_parameters": "parameter", "_buffers": "buffer", "_modules": "part"}


def is_torchs(module: nn.Module) -> bool:
    """Whether a module's class belongs to torch."""
    return type(module).__module__.startswith("torch.nn")


class ModuleTables:
    """Swaps the tensors of a module and its submodules, and restores everything that forward changed."""

    def __init__(self, module: nn.Module) -> None:
        self._parts = [(path, part, _copies(part)) for path, part in module.named_modules()]

    def put(self, instead: Mapping[int, Tensor]) -> None:
        """Replace tensors by ``id`` wherever they occur, so that tied weights stay tied."""
        for _, part, before in self._parts:
            for kind in ("_parameters", "_buffers"):
                table: dict[str, Any] = getattr(part, kind)
                table.update({name: instead[id(old)] for name, old in before[kind].items() if id(old) in instead})

    def refuse_growth_and_loss(self) -> None:
        """Raise if forward created or removed a parameter, a buffer or a submodule that has some.

        A submodule without state, such as a loss function, may be created at each step: its work is in the graph.
        """
        for path, part, before in self._parts:
            for kind, word in _KINDS.items():
                now = getattr(part, kind)
                for name in _with_state(now) - _with_state(before[kind]):
                    raise CaptureError(
                        f"forward creates the {word} '{_join(path, name)}'. A captured forward runs once, and what it "
                        "creates would be lost. Create it in __init__ with its final shape, and write into it with "
                        "copy_()."
                    )
                for name in _with_state(before[kind]) - _with_state(now):
                    raise CaptureError(
                        f"{word.capitalize()} {_join(path, name)} is removed from the model when calling the forward "
                        "method. A captured program keeps the same state from step to step: do not remove it."
                    )

    def restore(self) -> None:
        """Restore every submodule."""
        for _, part, before in self._parts:
            for kind in _KINDS:
                table: dict[str, Any] = getattr(part, kind)
                table.clear()
                table.update(before[kind])
            if is_torchs(part):
                # Recurrent layers keep a list of their weights; old-style weight norm keeps a computed weight.
                part.__dict__.update(before["__dict__"])


def _copies(part: nn.Module) -> dict[str, dict[str, Any]]:
    copies = {kind: dict(getattr(part, kind)) for kind in _KINDS}
    return {**copies, "__dict__": _own(part)} if is_torchs(part) else copies


def _own(part: nn.Module) -> dict[str, Any]:
    return {name: value for name, value in part.__dict__.items() if name not in _KINDS and name != "training"}


def _with_state(table: Mapping[str, Any]) -> set[str]:
    """The names of tensors, and of submodules that have some."""
    return {name for name, value in table.items() if isinstance(value, Tensor) or _has_state(value)}


def _has_state(part: nn.Module | None) -> bool:
    return part is not None and bool([*part.parameters(), *part.buffers()])


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def replaced(module: nn.Module, held: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """The tensors that forward has put in place of ``held``, by name."""
    now = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    for name, tensor in held.items():
        if name in now and now[name] is not tensor:
            yield name, now[name]


def refuse_overlaps(module: nn.Module, layout: StateLayout) -> None:
    """Raise if a trained parameter shares memory with another parameter or buffer: on the device they would diverge."""
    state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    for names in _by_storage(state).values():
        for one, other in combinations(names, 2):
            if (one in layout.trained or other in layout.trained) and _overlap(state[one], state[other]):
                raise CaptureError(
                    f"'{one}' and '{other}' are two tensors in the same memory, as after an assignment to .data. The "
                    "device stores each tensor separately, so training would make them diverge. Assign the parameter "
                    f"instead, model.{other} = model.{one}, or give one of them its own memory with clone()."
                )


def refuse_outside_views(module: nn.Module, changing: Collection[str], graph: GraphModule) -> None:
    """Raise if a graph uses memory of a tensor that training changes as a constant, such as ``weight.data``."""
    state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    owners = _by_storage({name: tensor for name, tensor in state.items() if name in changing})
    for node in graph.graph.nodes:
        constant = getattr(graph, str(node.target), None) if node.op == "get_attr" else None
        if isinstance(constant, Tensor) and constant.layout is torch.strided and constant.numel():
            for name in owners.get(storage_address(constant.untyped_storage()), ()):
                raise CaptureError(
                    f"A tensor that shares memory with '{name}' and is kept outside of the module, such as {name}.data "
                    "or a slice of it, is used in forward or in the loss. The device stores the parameter separately, "
                    "so training would not reach that tensor. Read it from the module where it is used."
                )


def _by_storage(state: Mapping[str, Tensor]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for name, tensor in state.items():
        if tensor.layout is torch.strided and tensor.device.type != "meta" and tensor.numel():
            found.setdefault(storage_address(tensor.untyped_storage()), []).append(name)
    return found


def _overlap(one: Tensor, other: Tensor) -> bool:
    first, second = _extent(one), _extent(other)
    return first.start < second.stop and second.start < first.stop


def _extent(tensor: Tensor) -> range:
    """The range of bytes in the storage from a tensor's first element to its last."""
    start = tensor.storage_offset() * tensor.element_size()
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return range(start, start + (last + 1) * tensor.element_size())
