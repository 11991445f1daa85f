"""Whether the loss changes when a batch is split, and the line of the operation that makes it change.

One forward pass is recorded, operation by operation. Then it runs four times on other data of the same sizes, without
touching the script's tensors or random numbers: the batch [A, B] of two halves, [A, A], [B, B] and [B, A]. A loss whose
samples do not see each other is a sum over the halves, so that [A, B] and [B, A] together give what [A, A] and [B, B]
give. If it is not, the operation is the first one with a value that depends on both halves and keeps their order: a sum
over the batch depends on both, and does not change when they are exchanged. No dimension is taken for the batch because
of its size. Normalisation over the batch is known to differ in training and keeps the rows of the whole batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from pilotage.proof.watching.lines import users_line
from pilotage.proof.watching.watch import Watch
from pilotage.torch_private import TorchDispatchMode, tree_flatten, tree_map

__all__ = ["ForwardRecord", "SplitCheck", "computed_types", "first_dependence"]

_RANDOM = ("dropout", "native_dropout", "bernoulli", "rand", "normal_", "uniform", "empty", "new_empty")
_NORMALISING = ("batch_norm",)
_PRODUCTS = ("convolution", "addmm", "mm", "bmm", "baddbmm", "linear", "_scaled_dot_product")

_MOST_ELEMENTS = 1 << 28
"""Larger forward passes are not recorded: they would be kept in memory."""

_ALLOWED = {torch.float64: 1e-9, torch.float32: 5e-6}
"""Differences that rounding makes, relative to the largest element."""

_MOST_GUESSES = 8
"""How many ways are tried to take tensors of unknown origin for rows of the batch, or not."""


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
    """The line and the name of the first operation that mixes samples, on the way to a loss that depends on it.

    Operations on weights of the module's batch normalisations are batch normalisations, under whatever name.
    """
    state = () if module is None else (*module.parameters(), *module.buffers())
    held = frozenset(value.data_ptr() for value in state)
    given = batch or list(_inputs_of(operations, held))
    sizes = {value.shape[0] for value in given if value.dim()}
    if len(sizes) != 1 or (size := sizes.pop()) < 2:
        # The tensors do not agree, as when one of them has time in front.
        return None
    certain = {id(value): 0 for value in batch or _likely_rows(operations, given) if value.dim()}
    normalising = _normalising_weights(module)
    found: list[int] = []
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        for guessed in _guesses(_uncertain(operations, size, certain, held)):
            inputs = {**certain, **guessed}
            try:
                dependence = _Replay(operations, size, root, normalising, inputs, wide=True).first_dependence()
            except Exception:
                # Some kernels take their own types only.
                dependence = _Replay(operations, size, root, normalising, inputs, wide=False).first_dependence()
            if dependence is None:
                return None
            found.append(next(number for number, each in enumerate(operations) if each is dependence))
    # A tensor that is taken for rows by mistake mixes samples earlier than the script does.
    operation = operations[max(found)]
    return operation.line, operation.name


def _normalising_weights(module: nn.Module | None) -> frozenset[int]:
    """The addresses of the weights of all batch normalisations of a module."""
    if module is None:
        return frozenset()
    kinds = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
    parts = [each for each in module.modules() if isinstance(each, kinds)]
    return frozenset(weight.data_ptr() for each in parts for weight in each.parameters(recurse=False))


def _inputs_of(operations: list[Operation], held: frozenset[int]) -> Iterator[Tensor]:
    """What a forward pass without a loader was given, or has made in between."""
    produced = {id(value) for each in operations for value in _tensors(each.results)}
    for each in operations:
        given = _tensors((each.args, each.kwargs))
        for value in given or _tensors(each.results):
            if not given or (id(value) not in produced and not value.requires_grad and value.data_ptr() not in held):
                yield value


def _likely_rows(operations: list[Operation], given: list[Tensor]) -> list[Tensor]:
    """Which inputs of a script without a loader are its batch: those from outside, or the larger ones that it makes."""
    made = {id(value) for each in operations for value in _tensors(each.results)}
    outside = [value for value in given if id(value) not in made]
    return outside or [value for value in given if value.dim() > 1] or given


def _uncertain(
    operations: list[Operation], size: int, certain: Mapping[int, int], held: frozenset[int]
) -> dict[int, int]:
    """Tensors of unknown origin with as many rows as the batch: labels of samples, or positions, or a mask."""
    found = {}
    for value in _inputs_of(operations, held):
        if id(value) not in certain and size in value.shape:
            found[id(value)] = value.shape.index(size)
    return found


def _guesses(uncertain: Mapping[int, int]) -> Iterator[dict[int, int]]:
    """Which of them are rows of the batch: all, none, each one alone, all but one."""
    yield dict(uncertain)
    if uncertain:
        yield {}
    if len(uncertain) > 1:
        for key in list(uncertain)[: _MOST_GUESSES // 2]:
            yield {key: uncertain[key]}
            yield {each: dim for each, dim in uncertain.items() if each != key}


class _Rows(NamedTuple):
    """Where a tensor has the rows of both halves of the batch, in the same order."""

    dim: int
    first: Tensor
    second: Tensor

    def runs(self, value: Tensor) -> tuple[Tensor, ...]:
        """The tensor for the batches [A, B], [A, A], [B, B] and [B, A]."""
        first, second = (each.to(value.device) for each in (self.first, self.second))
        a, b = value.index_select(self.dim, first), value.index_select(self.dim, second)
        twice = value.index_copy(self.dim, second, a)
        return value.clone(), twice, value.index_copy(self.dim, first, b), twice.index_copy(self.dim, first, b)


class _Replay:
    """Runs recorded operations on four batches at once.

    Large because the four runs, and what is known about their values, belong together.
    """

    def __init__(
        self,
        operations: list[Operation],
        size: int,
        root: Tensor,
        normalising: frozenset[int],
        inputs: Mapping[int, int],
        *,
        wide: bool,
    ) -> None:
        """``inputs`` are the tensors that hold rows of the batch, and in which dimension; ``wide`` is for float64."""
        self._operations = operations
        self._half = size // 2
        self._root = root
        self._normalising = normalising
        self._inputs = inputs
        self._wide = wide
        self._values: dict[int, tuple[Tensor, ...]] = {}
        self._rows: dict[int, _Rows] = {}
        self._mixed_by: dict[int, Operation] = {}
        """Where a value began to depend on both halves."""
        self._last_use = {id(v): n for n, each in enumerate(operations) for v in _tensors((each.args, each.kwargs))}

    def first_dependence(self) -> Operation | None:
        wanted, found = self._feeding_root(), None
        for number, each in enumerate(self._operations):
            given, results = _tensors((each.args, each.kwargs)), _tensors(each.results)
            self._take_inputs(given or results)
            if any(id(value) in self._values for value in given):
                self._run(each)
                if any(id(value) in wanted for value in results) and self._mixes(each):
                    found = found or self._mixed_by[id(results[0])]
            for value in given:
                if self._last_use[id(value)] == number and value is not self._root:
                    self._values.pop(id(value), None)
        loss = self._values.get(id(self._root))
        if found is None or loss is None or not bool((_unexplained(*loss) > self._allowed(loss[0])).any()):
            return None
        return found

    def _feeding_root(self) -> set[int]:
        """The tensors that the loss is computed from."""
        wanted = {id(self._root)}
        for each in reversed(self._operations):
            if any(id(value) in wanted for value in _tensors(each.results)):
                wanted |= {id(value) for value in _tensors((each.args, each.kwargs))}
        return wanted

    def _take_inputs(self, values: list[Tensor]) -> None:
        """Exchange the halves of what holds rows of the batch."""
        places = torch.arange(2 * self._half)
        for value in values:
            if id(value) in self._inputs and id(value) not in self._values:
                rows = _Rows(self._inputs[id(value)], places[: self._half], places[self._half :])
                self._keep(value, rows)

    def _keep(self, value: Tensor, rows: _Rows) -> None:
        self._rows[id(value)] = rows
        self._values[id(value)] = tuple(map(self._widened, rows.runs(value.detach())))

    def _run(self, operation: Operation) -> None:
        if operation.name.startswith(_RANDOM) or self._normalises(operation):
            self._keep_rows(operation)
            return
        results = [_tensors(self._call(operation, run)) for run in range(4)]
        for value, *runs in zip(_tensors(operation.results), *results, strict=False):
            self._values[id(value)] = tuple(runs)
            self._rows.pop(id(value), None)

    def _normalises(self, operation: Operation) -> bool:
        if any(name in operation.name for name in _NORMALISING):
            return True
        given = _tensors((operation.args, operation.kwargs))
        return bool(self._normalising) and any(value.data_ptr() in self._normalising for value in given)

    def _keep_rows(self, operation: Operation) -> None:
        """Keep the rows that the operation gave for the whole batch, and exchange them as those of its argument."""
        given = [value for value in _tensors((operation.args, operation.kwargs)) if id(value) in self._values]
        alike = {tuple(value.shape): value for value in given}
        for value in _tensors(operation.results):
            like = alike.get(tuple(value.shape))
            if like is None:
                continue
            rows = self._rows_of(like)
            if rows is not None:
                self._keep(value, rows)
            else:
                # The samples were mixed before, and still are.
                self._values[id(value)] = tuple(each.clone() for each in self._values[id(like)])

    def _rows_of(self, value: Tensor) -> _Rows | None:
        """Which rows of a tensor change with which half of the batch; None if some change with both."""
        if id(value) in self._rows:
            return self._rows[id(value)]
        whole, with_first, with_second, _ = self._values[id(value)]
        if not whole.shape == with_first.shape == with_second.shape:
            return None
        allowed = self._allowed(whole)
        first, second = _differences(with_second, whole) > allowed, _differences(with_first, whole) > allowed
        for dim in range(whole.dim()):
            others = [each for each in range(whole.dim()) if each != dim]
            of_first, of_second = (each.sum(others) > 0 if others else each for each in (first, second))
            counts = int(of_first.sum()), int(of_second.sum())
            if counts[0] == counts[1] > 0 and not bool((of_first & of_second).any()):
                return _Rows(dim, of_first.nonzero()[:, 0], of_second.nonzero()[:, 0])
        return None

    def _call(self, operation: Operation, run: int) -> Any:
        def chosen(value: Any) -> Any:
            if isinstance(value, Tensor):
                known = self._values.get(id(value))
                return self._widened(value.detach()) if known is None else known[run]
            if self._wide and isinstance(value, torch.dtype) and value.is_floating_point:
                return torch.float64
            return value

        args, kwargs = tree_map(chosen, (operation.args, operation.kwargs))
        if operation.name.endswith("_"):
            own = {id(runs[run]) for runs in self._values.values()}
            args = tree_map(lambda v: v.clone() if isinstance(v, Tensor) and id(v) not in own else v, args)
        return operation.function(*args, **kwargs)

    def _widened(self, value: Tensor) -> Tensor:
        return value.double() if self._wide and value.is_floating_point() else value

    def _mixes(self, operation: Operation) -> bool:
        """Whether a value depends on both halves and on their order, and not as a sum of them."""
        mixes = False
        for value in _tensors(operation.results):
            runs = self._values.get(id(value))
            if runs is None or not runs[0].is_floating_point() or len({each.shape for each in runs}) > 1:
                continue
            allowed = self._allowed(runs[0], operation)
            changes = [_differences(other, runs[0]) > allowed for other in runs[1:]]
            mixed = changes[0] & changes[1] & changes[2]
            if not bool(mixed.any()):
                self._mixed_by.pop(id(value), None)
                continue
            given = _tensors((operation.args, operation.kwargs))
            before = [self._mixed_by[id(each)] for each in given if id(each) in self._mixed_by]
            self._mixed_by[id(value)] = before[0] if before else operation
            self._mixed_by.setdefault(id(_tensors(operation.results)[0]), self._mixed_by[id(value)])
            mixes = mixes or bool((mixed & (_unexplained(*runs) > allowed)).any())
        return mixes

    def _allowed(self, value: Tensor, operation: Operation | None = None) -> float:
        """The difference that rounding makes; a sum of large numbers may be small."""
        values = [value]
        for each in () if operation is None else _tensors((operation.args, operation.kwargs)):
            if id(each) in self._values and each.numel() > value.numel():
                values.append(self._values[id(each)][0])
        finite = [each[each.isfinite()].abs() for each in values if each.is_floating_point()]
        sizes = [float(each.max()) for each in finite if each.numel()]
        return _ALLOWED.get(value.dtype, 1e-2) * max(sizes, default=0.0) + 1e-30


def _differences(left: Tensor, right: Tensor) -> Tensor:
    """How far elements are apart, in numbers of at least 32 bits."""
    if left.dtype == torch.bool or not (left.is_floating_point() or left.is_complex()):
        return (left != right).float()
    return (_precise(left) - _precise(right)).abs()


def _unexplained(whole: Tensor, with_first: Tensor, with_second: Tensor, exchanged: Tensor) -> Tensor:
    """How far a value is from a sum over both halves."""
    whole, with_first, with_second, exchanged = map(_precise, (whole, with_first, with_second, exchanged))
    return ((whole - with_first) + (exchanged - with_second)).abs()


def _precise(value: Tensor) -> Tensor:
    return value.float() if value.is_floating_point() and value.dtype.itemsize < 4 else value


def _tensors(value: Any) -> list[Tensor]:
    return [each for each in tree_flatten(value)[0] if isinstance(each, Tensor)]
