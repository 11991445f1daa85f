"""HPU graphs: operations recorded once on fixed tensors and replayed."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import torch
from torch import Tensor

from habana_frameworks._emulation import computing_device, lazy
from habana_frameworks.torch.hpu import streams
from habana_frameworks.torch.hpu.streams import Stream
from pilotage.engine import LOCAL_SCALAR, TorchDispatchMode, schema_of, storage_address, tree_leaves

_STATISTICS = ("running_mean", "running_var")


@dataclass(frozen=True, slots=True)
class _Call:
    """One recorded operation and its output tensors."""

    operation: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: list[Any]
    made: list[bool]

    def repeat(self) -> None:
        is_mere_view = not any(self.made) and not _written(self.operation, self.args, self.kwargs)
        if is_mere_view and any(isinstance(each, Tensor) for each in self.outputs):
            return
        results = tree_leaves(self.operation(*self.args, **self.kwargs))
        for output, result, is_made in zip(self.outputs, results, self.made, strict=True):
            if is_made:
                output.detach().copy_(result)


class _Recorder(TorchDispatchMode):
    """Records each operation and, for a dry run, the contents of memory before its first write."""

    def __init__(self, *, dry_run: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._dry_run = dry_run
        self.calls: list[_Call] = []
        self._before: dict[int, tuple[Any, Any]] = {}
        self._made: set[int] = set()
        self._random_state = computing_device.generator().get_state()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is LOCAL_SCALAR:
            raise RuntimeError(
                "A value was read while an HPU graph was captured (.item(), float(), an if on a tensor). On the card "
                "no value is known then. Keep it out of the graph."
            )
        if self._dry_run:
            self._remember(_written(func, args, kwargs))
        result = func(*args, **kwargs)
        given = {_memory(each) for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)}
        outputs = tree_leaves(result)
        made = [isinstance(each, Tensor) and _memory(each) not in given for each in outputs]
        self._made |= {_memory(each) for each, is_made in zip(outputs, made, strict=True) if is_made}
        # The outputs are kept alive, so their memory addresses are not reused.
        self.calls.append(_Call(func, args, kwargs, outputs, made))
        return result

    def _remember(self, tensors: list[Tensor]) -> None:
        for tensor in tensors:
            key = _memory(tensor)
            if key not in self._before and key not in self._made:
                storage = tensor.untyped_storage()
                self._before[key] = (storage, storage.clone())

    def restore(self) -> None:
        """Undo the writes and random draws of a dry run, which runs nothing on the card."""
        if not self._dry_run:
            return
        computing_device.generator().set_state(self._random_state)
        for storage, before in self._before.values():
            storage.copy_(before)


def _memory(tensor: Tensor) -> int:
    number: int = storage_address(tensor.untyped_storage())
    return number


def _written(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    values = dict(zip((each.name for each in schema_of(func).arguments), args, strict=False)) | kwargs
    changed = [each.name for each in schema_of(func).arguments if each.alias_info and each.alias_info.is_write]
    # Batch norm writes its statistics without declaring it in its schema.
    if "batch_norm" in schema_of(func).name and (values.get("training") or values.get("train")):
        changed += _STATISTICS
    return [leaf for name in changed for leaf in tree_leaves(values.get(name)) if isinstance(leaf, Tensor)]


_capturing: list[HPUGraph] = []


def is_current_stream_capturing() -> bool:
    """Whether a graph is being captured."""
    return bool(_capturing)


class HPUGraph:
    """Operations on fixed tensors: captured once, then replayed on the current contents of the tensors.

    Asynchronous replays only affect the card: here a replay is complete when the call returns.
    """

    def __init__(self) -> None:
        self._recorder: _Recorder | None = None
        self._calls: list[_Call] = []
        self._inputs: list[Tensor] = []
        self._outputs: list[Tensor] = []

    @property
    def hpu_graph(self) -> HPUGraph:
        """The recorded graph."""
        return self

    def capture_begin(self, dry_run: bool = False) -> None:
        """Start recording. The operations take effect once, unless it is a dry run, which undoes them at its end."""
        if self._recorder is not None:
            raise RuntimeError("This HPU graph is being captured already; call capture_end() first.")
        lazy.mark(inside_a_call=True)
        self._recorder = _Recorder(dry_run=dry_run)
        self._recorder.__enter__()  # type: ignore[no-untyped-call]
        _capturing.append(self)

    def capture_end(self) -> None:
        """End the recording."""
        if self._recorder is None:
            raise RuntimeError("This HPU graph is not being captured; call capture_begin() first.")
        _capturing.remove(self)
        self._recorder.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        self._recorder.restore()
        self._calls, self._recorder = self._recorder.calls, None
        lazy.mark(inside_a_call=True)

    def mark_user_inputs(self, static_tlist: Sequence[Tensor]) -> None:
        """Name the tensors into which replayV3 copies its inputs."""
        self._inputs = list(static_tlist)

    def mark_user_outputs(self, static_tlist: Sequence[Tensor]) -> None:
        """Name the tensors that hold the results."""
        self._outputs = list(static_tlist)

    def get_user_input_match_indices(self) -> list[int]:
        """Return the numbers of the marked inputs that the graph uses."""
        used = {id(each) for call in self._calls for each in tree_leaves((call.args, call.kwargs))}
        return [number for number, each in enumerate(self._inputs) if id(each) in used]

    def clear_inputs(self) -> None:
        """Release the inputs on the card; here the recorded operations keep them."""

    def replay(self, asynchronous: bool = False) -> None:
        """Run the recorded operations."""
        if not self._calls:
            raise RuntimeError("This HPU graph holds nothing; capture it first.")
        with torch.no_grad():
            for call in self._calls:
                call.repeat()

    def replayV2(self, static_tlist: Sequence[Tensor], tlist: Sequence[Tensor], asynchronous: bool = False) -> None:
        """Copy tensors into those of the capture, then run the recorded operations."""
        if len(static_tlist) != len(tlist):
            raise ValueError(
                f"{len(tlist)} tensors were given, but {len(static_tlist)} were captured. Give one for each."
            )
        for place, value in zip(static_tlist, tlist, strict=True):
            place.detach().copy_(value.detach())
        self.replay(asynchronous)

    def replayV3(self, tlistI: Sequence[Tensor], asynchronous: bool = False) -> None:
        """Copy tensors into the marked inputs, in their order, then run the recorded operations."""
        self.replayV2(self._inputs, tlistI, asynchronous)

    def reset(self) -> None:
        """Discard the recording."""
        self._calls, self._inputs, self._outputs = [], [], []


class graph:
    """Capture the operations inside a ``with`` block."""

    def __init__(self, hpu_graph: HPUGraph, stream: Stream | None = None, dry_run: bool = False) -> None:
        self._graph = hpu_graph
        self._stream = streams.stream(stream)
        self._dry_run = dry_run

    def __enter__(self) -> None:
        computing_device.synchronize()
        gc.collect()
        self._stream.__enter__()
        self._graph.capture_begin(self._dry_run)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._graph.capture_end()
        self._stream.__exit__(None, None, None)
