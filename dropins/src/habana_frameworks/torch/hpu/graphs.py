"""HPU graphs: operations recorded once on fixed tensors and replayed."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Any

import torch
from torch import Tensor

from habana_frameworks._emulation import computing_device
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
    """Records each operation, and the contents of memory before its first write."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
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
        """Undo the writes and random draws of the capture, which runs nothing on the card."""
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


class HPUGraph:
    """Operations on fixed tensors: captured once, then replayed on the current contents of the tensors."""

    def __init__(self) -> None:
        self._recorder: _Recorder | None = None
        self._calls: list[_Call] = []

    def capture_begin(self) -> None:
        """Start recording."""
        if self._recorder is not None:
            raise RuntimeError("This HPU graph is being captured already; call capture_end() first.")
        self._recorder = _Recorder()
        self._recorder.__enter__()  # type: ignore[no-untyped-call]

    def capture_end(self) -> None:
        """End the recording."""
        if self._recorder is None:
            raise RuntimeError("This HPU graph is not being captured; call capture_begin() first.")
        self._recorder.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        self._recorder.restore()
        self._calls, self._recorder = self._recorder.calls, None

    def replay(self) -> None:
        """Run the recorded operations."""
        if not self._calls:
            raise RuntimeError("This HPU graph holds nothing; capture it first.")
        with torch.no_grad():
            for call in self._calls:
                call.repeat()

    def reset(self) -> None:
        """Discard the recording."""
        self._calls = []


class graph:
    """Capture the operations inside a ``with`` block."""

    def __init__(self, hpu_graph: HPUGraph, stream: Stream | None = None) -> None:
        self._graph = hpu_graph
        self._stream = streams.stream(stream)

    def __enter__(self) -> None:
        self._stream.__enter__()
        self._graph.capture_begin()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._graph.capture_end()
        self._stream.__exit__(None, None, None)
