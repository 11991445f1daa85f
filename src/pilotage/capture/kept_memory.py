"""State whose memory forward exchanges, for example by ``self.weight.data = …`` or ``self.half()``.

A program keeps each tensor of the state in one place. Eager PyTorch would use and update the new memory; the program
would keep using the old one. So this is refused, unless it changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from pilotage.capture.stand_ins import StandIns
from pilotage.errors import CaptureError
from pilotage.program.graphs.source_lines import called_from
from pilotage.torch_private import storage_address

_SET_DATA: Any = Tensor.data.__set__  # type: ignore[attr-defined]


class KeptMemory(StandIns):
    """Tensors that stand for those of a module, and that have to keep their memory."""

    def __init__(self, instead: Mapping[int, Tensor], state: Mapping[str, Tensor]) -> None:
        super().__init__(instead)
        self._names = {id(tensor): name for name, tensor in state.items()}
        """Such as "Parameter layer.weight", by the ``id`` of the tensor that stands for it."""
        self._memory = {
            name: (tensor, storage_address(tensor.untyped_storage()))
            for name, tensor in state.items()
            if tensor.layout is torch.strided
        }

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call a function, unless it gives a tensor of the state other memory."""
        if func == _SET_DATA:
            tensor, new = self._replaced(args)
            if id(tensor) in self._names:
                if not _is_same_memory(tensor, new):
                    raise _refusal(self._names[id(tensor)], called_from())
                return None
        return super().__torch_function__(func, types, args, kwargs)

    def refuse_exchanges(self) -> None:
        """Raise if a tensor has other memory than before, as after ``set_()``, which torch announces to no mode."""
        for name, (tensor, address) in self._memory.items():
            if storage_address(tensor.untyped_storage()) != address:
                raise _refusal(name)


def _refusal(name: str, where: str = "") -> CaptureError:
    own = name.rpartition(" ")[2].rpartition(".")[2]
    return CaptureError(
        f"{name} is reassigned within the model when calling the forward method. This is not supported. Consider using "
        f"self.{own}.copy_(src) to copy data from a source tensor, where src is the name of the source tensor, under "
        "torch.no_grad() for a parameter. Assigning to .data, set_(), and converting the module, as by half(), "
        f"give the tensor other memory than the program has.{where}"
    )


@contextmanager
def conversions_by_data(module: nn.Module) -> Iterator[None]:
    """Let conversions such as ``self.to(x.device)`` assign to ``.data``, as they do for tensors with data."""
    parts = [part for part in module.modules() if "_apply" not in part.__dict__]
    for part in parts:
        part.__dict__["_apply"] = partial(_apply, part)
    try:
        yield
    finally:
        for part in parts:
            part.__dict__.pop("_apply", None)


def _apply(part: nn.Module, function: Callable[[Tensor], Tensor], recurse: bool = True) -> nn.Module:
    for child in part.children() if recurse else ():
        child._apply(function)
    for tensor in part._parameters.values():
        if tensor is not None:
            with torch.no_grad():
                tensor.data = function(tensor)
    part._buffers.update({name: each if each is None else function(each) for name, each in part._buffers.items()})
    return part


def _is_same_memory(one: Tensor, other: Tensor) -> bool:
    return one is other or (
        (one.dtype, one.shape, one.stride(), one.storage_offset())
        == (other.dtype, other.shape, other.stride(), other.storage_offset())
        and storage_address(one.untyped_storage()) == storage_address(other.untyped_storage())
    )
