"""Whether the loss changes when a batch is split, and the line of the operation that makes it change.

One forward pass is recorded, operation by operation. Then it runs again on the whole batch and on its two halves, on
copies of the batch, without touching the script's tensors or random numbers. In a model whose samples do not see each
other, each row of the halves equals the same row of the whole. Normalisation over the batch is known to differ in
training and keeps the rows of the whole batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from pilotage.proof.watching.lines import users_line
from pilotage.proof.watching.watch import Watch
from pilotage.torch_private import TorchDispatchMode, tree_flatten, tree_map

__all__ = ["ForwardRecord", "SplitCheck", "computed_types", "first_dependence"]

_RANDOM = ("dropout", "bernoulli", "rand", "normal_", "uniform", "empty", "new_empty")
_NORMALISING = ("batch_norm",)
_PRODUCTS = ("convolution", "addmm", "mm", "bmm", "baddbmm", "linear", "_scaled_dot_product")
_CUTTING = {"split": (2, (1,)), "split_with_sizes": (2, (1,)), "slice": (1, (2, 3)), "narrow": (1, (2, 3))}
"""Operations that cut a dimension: the place of the dimension among their arguments, and those of counts of rows."""

_MOST_ELEMENTS = 1 << 28
"""Larger forward passes are not recorded: they would be kept in memory."""

Halves = tuple[Any, Any, Any]
"""A value for the whole batch and for its two halves."""


class Operation:
    """One operation of a forward pass."""

    __slots__ = ("args", "function", "kwargs", "line", "results")

    def __init__(self, function: Any, args: Any, kwargs: Any, results: Any, line: str | None) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.results = results
        self.line = line

    @property
    def name(self) -> str:
        """The name of the operation, without its overload."""
        return str(self.function.name()).removeprefix("aten::").split(".")[0]


class ForwardRecord(TorchDispatchMode):
    """Records the operations that run while it is entered."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations: list[Operation] = []
        self._elements = 0
        self.is_complete = True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        results = func(*args, **(kwargs or {}))
        if self.is_complete:
            self._elements += sum(each.numel() for each in tree_flatten(results)[0] if isinstance(each, Tensor))
            if self._elements > _MOST_ELEMENTS:
                self.is_complete, self.operations = False, []
            else:
                self.operations.append(Operation(func, args, kwargs or {}, results, users_line()))
        return results


class SplitCheck:
    """Records the second forward pass of a script and looks at what it shows."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._record: ForwardRecord | None = None
        self._batch: list[Tensor] = []
        self.is_done = False
        self.is_over = False
        """Whether nothing is recorded and nothing will be: later steps need not call."""

    def at_batch(self, tensors: list[Tensor]) -> None:
        """A batch goes to the script: from the second update on, record what is done with it, once."""
        self._leave()
        if self.is_done or self._watch.updates < 1 or self._watch.is_stopping:
            return
        self._batch = [tensor for tensor in tensors if tensor.dim() and not tensor.requires_grad]
        self._enter()

    def after_update(self) -> None:
        """An update was made: a script without a loader is recorded from here on."""
        if not self.is_done and self._record is None and self._watch.updates == 1 and not self._batch:
            self._enter()

    def _enter(self) -> None:
        self._record = ForwardRecord()
        self._record.__enter__()  # type: ignore[no-untyped-call]

    def _leave(self) -> ForwardRecord | None:
        record, self._record = self._record, None
        self.is_over = self.is_done
        if record is not None:
            record.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        return record

    def at_backward(self, root: Tensor, facts: dict[str, Any], module: nn.Module | None = None) -> None:
        """Backward begins: look at what was recorded of a forward pass of a module."""
        record = self._leave()
        if record is None:
            return
        self.is_done = True
        batch, self._batch = self._batch, []
        if record.is_complete:
            facts["computed_in"] = computed_types(record.operations)
            self.look_at(record, batch, root, module=module)

    def look_at(
        self,
        record: ForwardRecord,
        batch: list[Tensor],
        root: Tensor,
        *,
        returned: Sequence[Tensor] = (),
        module: nn.Module | None = None,
    ) -> None:
        """Record what a forward pass shows about the loss, and where the scalars that forward returns come from."""
        lines = {
            "root": _line_of(record.operations, root),
            "returned": [_line_of(record.operations, each) for each in returned],
        }
        try:
            found = first_dependence(record.operations, batch, root, module)
        except Exception as error:
            self._watch.note("split", line=None, problem=f"{type(error).__name__}: {error}"[:200], **lines)
            return
        line, operation = found or (None, None)
        self._watch.note("split", line=line, operation=operation, **lines)


def computed_types(operations: list[Operation]) -> dict[str, int]:
    """In which types products were computed, and how many of them."""
    found: dict[str, int] = {}
    for each in operations:
        if each.name.startswith(_PRODUCTS) and isinstance(each.results, Tensor):
            name = str(each.results.dtype).removeprefix("torch.")
            found[name] = found.get(name, 0) + 1
    return found


def _line_of(operations: list[Operation], root: Tensor) -> str | None:
    """Where a tensor was computed."""
    for each in reversed(operations):
        if any(value is root for value in _tensors(each.results)):
            return each.line
    return None


def first_dependence(
    operations: list[Operation], batch: list[Tensor], root: Tensor, module: nn.Module | None = None
) -> tuple[str | None, str] | None:
    """The line and the name of the first operation whose rows depend on other rows, on the way to the loss.

    Operations on weights of the module's batch normalisations are batch normalisations, under whatever name.
    """
    state = () if module is None else (*module.parameters(), *module.buffers())
    size = _batch_size(operations, batch, frozenset(value.data_ptr() for value in state))
    if size < 2:
        return None
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        return _Replay(operations, size, root, _normalising_weights(module)).first_dependence()


def _normalising_weights(module: nn.Module | None) -> frozenset[int]:
    """The addresses of the weights of all batch normalisations of a module."""
    if module is None:
        return frozenset()
    kinds = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
    parts = [each for each in module.modules() if isinstance(each, kinds)]
    return frozenset(weight.data_ptr() for each in parts for weight in each.parameters(recurse=False))


def _batch_size(operations: list[Operation], batch: list[Tensor], held: frozenset[int]) -> int:
    """The rows of the batch; 0 if its tensors do not agree, as when one of them has time in front."""
    given = batch
    if not given:
        produced = {id(value) for each in operations for value in _tensors(each.results)}
        given = [
            value
            for each in operations
            for value in _tensors((each.args, each.kwargs))
            if id(value) not in produced and not value.requires_grad and value.data_ptr() not in held
        ]
        # A script may make its batch in between.
        made = [each.results for each in operations if not _tensors((each.args, each.kwargs))]
        given += _tensors(made)
    sizes = {value.shape[0] for value in given if value.dim()}
    return sizes.pop() if len(sizes) == 1 else 0


class _Replay:
    """Runs recorded operations on a whole batch and on its halves at once."""

    def __init__(self, operations: list[Operation], size: int, root: Tensor, normalising: frozenset[int]) -> None:
        self._operations = operations
        self._normalising = normalising
        self._size = size
        self._half = size // 2
        self._root = root
        self._values: dict[int, Halves] = {}
        self._produced = {id(value) for each in operations for value in _tensors(each.results)}

    def first_dependence(self) -> tuple[str | None, str] | None:
        wanted = self._feeding_root()
        for each in self._operations:
            self._take_inputs(each)
            given = _tensors((each.args, each.kwargs))
            if not given:
                self._cut_results(each)  # New tensors, such as zeros for each sample.
                continue
            if not any(id(value) in self._values for value in given):
                continue
            self._run(each)
            if any(id(value) in wanted for value in _tensors(each.results)) and self._differs(each):
                return each.line, each.name
        return None

    def _feeding_root(self) -> set[int]:
        """The tensors that the loss is computed from."""
        wanted = {id(self._root)}
        for each in reversed(self._operations):
            if any(id(value) in wanted for value in _tensors(each.results)):
                wanted |= {id(value) for value in _tensors((each.args, each.kwargs))}
        return wanted

    def _take_inputs(self, operation: Operation) -> None:
        """Cut what came from outside and has as many rows as the batch."""
        for value in _tensors((operation.args, operation.kwargs)):
            is_outside = id(value) not in self._produced and id(value) not in self._values
            if is_outside and value.dim() and value.shape[0] == self._size and not value.requires_grad:
                whole = value[: 2 * self._half].clone()
                self._values[id(value)] = (whole, whole[: self._half].clone(), whole[self._half :].clone())

    def _run(self, operation: Operation) -> None:
        if operation.name.startswith(_RANDOM) or self._normalises(operation):
            self._cut_results(operation)
            return
        results = [_tensors(self._call(operation, part)) for part in range(3)]
        for value, *parts in zip(_tensors(operation.results), *results, strict=False):
            self._values[id(value)] = (parts[0], parts[1], parts[2])

    def _normalises(self, operation: Operation) -> bool:
        if any(name in operation.name for name in _NORMALISING):
            return True
        given = _tensors((operation.args, operation.kwargs))
        return bool(self._normalising) and any(value.data_ptr() in self._normalising for value in given)

    def _cut_results(self, operation: Operation) -> None:
        """Keep what the operation gave for the whole batch, cut as its arguments are."""
        alike = {
            tuple(value.shape): value
            for value in _tensors((operation.args, operation.kwargs))
            if self._cut_dim(value) is not None
        }
        for value in _tensors(operation.results):
            like = alike.get(tuple(value.shape))
            if like is not None:
                self._values[id(value)] = self._cut_like(value, like)
                continue
            dim = next((dim for dim, size in enumerate(value.shape) if size == self._size), None)
            if dim is not None:
                whole = value.narrow(dim, 0, 2 * self._half).clone()
                first, second = whole.chunk(2, dim)
                self._values[id(value)] = (whole, first.clone(), second.clone())

    def _cut_like(self, value: Tensor, like: Tensor) -> Halves:
        """Cut a tensor as another of its shape was cut: samples may be neighbours, or rows of one kind may."""
        dim = self._cut_dim(like)
        assert dim is not None
        whole, first, _ = self._values[id(like)]
        rows = whole.shape[dim]
        kept, kinds = value.narrow(dim, 0, rows).clone(), rows // (2 * self._half)
        if kinds > 1 and not torch.equal(whole.narrow(dim, 0, rows // 2), first):
            apart = kept.unflatten(dim, (kinds, 2 * self._half))
            halves = [part.flatten(dim, dim + 1) for part in apart.chunk(2, dim + 1)]
        else:
            halves = list(kept.chunk(2, dim))
        return kept, halves[0].clone(), halves[1].clone()

    def _cut_dim(self, value: Tensor) -> int | None:
        known = self._values.get(id(value))
        if known is None or known[0].dim() != known[1].dim():
            return None
        pairs = enumerate(zip(known[0].shape, known[1].shape, strict=True))
        return next((dim for dim, (whole, half) in pairs if whole == 2 * half), None)

    def _call(self, operation: Operation, part: int) -> Any:
        def chosen(value: Any) -> Any:
            if isinstance(value, Tensor):
                known = self._values.get(id(value))
                return value.detach() if known is None else known[part]
            return value

        args, kwargs = tree_map(chosen, (operation.args, operation.kwargs))
        rows = 2 * self._half if part == 0 else self._half
        if rows != self._size:
            args = tuple(self._resized(value, operation, rows) for value in args)
            places = self._counts_in(operation)
            args = tuple(self._rescaled(each, rows) if place in places else each for place, each in enumerate(args))
        if operation.name.endswith("_"):
            own = {id(parts[part]) for parts in self._values.values()}
            args = tree_map(lambda v: v.clone() if isinstance(v, Tensor) and id(v) not in own else v, args)
        return operation.function(*args, **kwargs)

    def _counts_in(self, operation: Operation) -> tuple[int, ...]:
        """The places of arguments that count rows of the batch."""
        if operation.name == "native_group_norm":
            return (3,)
        if operation.name not in _CUTTING:
            return ()
        place, counts = _CUTTING[operation.name]
        dim = operation.args[place] if len(operation.args) > place else 0
        cut = self._cut_dim(operation.args[0])
        return counts if cut is not None and cut == dim % operation.args[0].dim() else ()

    def _rescaled(self, value: Any, rows: int) -> Any:
        """Numbers of rows of whole batches, for fewer rows."""
        if isinstance(value, (list, tuple)):
            return [self._rescaled(each, rows) for each in value]
        fits = isinstance(value, int) and value % self._size == 0 and abs(value) < 1 << 40
        return value // self._size * rows if fits else value

    def _resized(self, value: Any, operation: Operation, rows: int) -> Any:
        """A list of sizes for fewer rows."""
        is_sizes = isinstance(value, (list, tuple)) and value and all(type(each) is int for each in value)
        shapes = [list(each.shape) for each in _tensors(operation.results)]
        if not is_sizes or not any(len(shape) == len(value) for shape in shapes):
            return value
        resized, done = [], False
        for each in value:
            fits = not done and each > 0 and each % self._size == 0
            resized.append(each // self._size * rows if fits else each)
            done = done or fits
        return resized

    def _differs(self, operation: Operation) -> bool:
        for value in _tensors(operation.results):
            parts = self._values.get(id(value))
            if parts is not None and value.is_floating_point() and not self._agree(*parts):
                return True
        return False

    def _agree(self, whole: Tensor, first: Tensor, second: Tensor) -> bool:
        """Whether the rows of both halves are those of the whole; what has no rows is left to the next operation."""
        candidates = list(self._joined(whole, first, second))
        if not candidates:
            # A table of all pairs of samples has rows, and yet no half of it fits.
            return not any(size in (self._size, 2 * self._half) for size in whole.shape) or whole.dim() < 2
        scale = float(whole.abs().max()) if whole.numel() else 0.0
        allowed = 1e-2 if whole.dtype in (torch.float16, torch.bfloat16) else 1e-3
        return any(float((whole - joined).abs().max()) <= allowed * scale + 1e-12 for joined in candidates)

    def _joined(self, whole: Tensor, first: Tensor, second: Tensor) -> Iterator[Tensor]:
        for dim in range(whole.dim()):
            rows = first.shape[dim] if first.dim() == whole.dim() else -1
            others = [size for number, size in enumerate(whole.shape) if number != dim]
            fits = rows >= 0 and whole.shape[dim] == 2 * rows and rows % self._half == 0 and first.shape == second.shape
            if not fits or others != [size for number, size in enumerate(first.shape) if number != dim]:
                continue
            yield torch.cat([first, second], dim)
            groups = rows // self._half
            if groups > 1:
                # Rows of several kinds: those of one kind are neighbours.
                pieces = [each.unflatten(dim, (groups, self._half)) for each in (first, second)]
                yield torch.cat(pieces, dim + 1).flatten(dim, dim + 1)


def _tensors(value: Any) -> list[Tensor]:
    return [each for each in tree_flatten(value)[0] if isinstance(each, Tensor)]
