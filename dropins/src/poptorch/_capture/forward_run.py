"""What PopTorch's checks need to know about one run of a model's forward."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from pilotage.engine import TorchDispatchMode, schema_of, source_lines, storage_address, tree_leaves
from poptorch._capture.block_record import BlockRecord
from poptorch.options.placement import Placer
from poptorch.poptorch_core import Error

__all__ = ["ForwardRun"]

_CONVOLUTIONS = frozenset({"aten::convolution", "aten::convolution_overrideable", "aten::_convolution"})
_MARKERS = frozenset({"prim", "poptorch"})
_NO_WORK = frozenset({"aten::detach", "aten::lift_fresh"})
"""Operations that torch inserts and that compute nothing."""


class ForwardRun(TorchDispatchMode):
    """While active, records every operation of forward and its block."""

    def __init__(self, placer: Placer, inputs: Iterable[Any], state: Mapping[str, Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.written_state: list[str] = []
        """The floating-point parameters and buffers that an operation overwrites, by its signature.

        Batch normalisation does not declare that it changes its statistics, so these are not among them."""
        self._state = {
            _address(tensor): name for name, tensor in state.items() if tensor.is_floating_point() and tensor.numel()
        }
        self.blocks = BlockRecord(placer)
        self._convolutions_in_multi_conv: int | None = None
        self._inputs = {id(leaf): leaf for leaf in tree_leaves(list(inputs)) if isinstance(leaf, Tensor)}
        self._used: set[int] = set()
        self._overlapped: set[int] = set()
        self._overlapped_outputs: list[Tensor] = []
        self._is_noticing = True
        self._tensor_ids = WeakTensorKeyDictionary()
        self._next_tensor_ids = itertools.count(1)

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Record an operation and run it."""
        if self._is_noticing and func.namespace not in _MARKERS and schema_of(func).name not in _NO_WORK:
            self._notice(func, args)
        return func(*args, **(kwargs or {}))

    @contextmanager
    def overlapping(self, tensor: Tensor) -> Iterator[None]:
        """Treat the operations of the block as the ones that overlap the transfer of an input."""
        if id(tensor) not in self._inputs:
            raise Error("poptorch.set_overlap_for_input applied on a node which is not a tensor input to the model.")
        self._overlapped.add(id(tensor))
        self._is_noticing = False
        try:
            yield
        finally:
            self._is_noticing = True

    def tensor_id(self, tensor: Tensor) -> int:
        """A number that is unique to this tensor in this run."""
        if tensor not in self._tensor_ids:
            self._tensor_ids[tensor] = next(self._next_tensor_ids)
        number: int = self._tensor_ids[tensor]
        return number

    def begin_multi_conv(self) -> None:
        """Count the convolutions from here on."""
        if self._convolutions_in_multi_conv is not None:
            raise Error("Nested poptorch.MultiConv is not supported. Close the first one before the second.")
        self._convolutions_in_multi_conv = 0

    def end_multi_conv(self, *, failed: bool) -> None:
        """Raise if there was no convolution, unless the block itself raised before."""
        found, self._convolutions_in_multi_conv = self._convolutions_in_multi_conv, None
        if not found and not failed:
            raise Error("Unexpected end_multi_conv: the poptorch.MultiConv contains no convolution.")

    def overlap_output(self, tensor: Tensor) -> None:
        """Note a tensor whose transfer to the host overlaps with computation."""
        self._overlapped_outputs.append(tensor)

    def check_overlaps(self, outputs: Any) -> None:
        """Raise if an input whose transfer overlaps is also used elsewhere, or if an output is not returned."""
        if self._overlapped & self._used:
            raise Error(
                "poptorch.set_overlap_for_input is not the only operation applied to an input. Use its result, and not "
                "the input itself, in the rest of the model."
            )
        returned = {id(leaf) for leaf in tree_leaves(outputs)}
        if any(id(tensor) not in returned for tensor in self._overlapped_outputs):
            raise Error("poptorch.set_overlap_for_output applied on a node which is not a tensor output to the model.")

    def _notice(self, func: Any, args: tuple[Any, ...]) -> None:
        if self.blocks.is_outside:
            raise Error(
                f"No active Block: {schema_of(func).name} runs after a `with poptorch.Block` has closed and before "
                "another "
                f"one opens. Put every operation of the model into a block.{source_lines.called_from()}"
            )
        self.blocks.note_operation()
        if schema_of(func).name in _CONVOLUTIONS and self._convolutions_in_multi_conv is not None:
            self._convolutions_in_multi_conv += 1
        self._note_writes(func, args)
        self._used.update(id(leaf) for leaf in tree_leaves(args) if id(leaf) in self._inputs)

    def _note_writes(self, func: Any, args: tuple[Any, ...]) -> None:
        for parameter, given in zip(schema_of(func).arguments, args, strict=False):
            if parameter.alias_info is not None and parameter.alias_info.is_write and isinstance(given, Tensor):
                name = self._state.get(_address(given))
                if name is not None and name not in self.written_state:
                    self.written_state.append(name)


def _address(tensor: Tensor) -> int:
    return storage_address(tensor.untyped_storage())
