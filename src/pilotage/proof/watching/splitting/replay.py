"""A recorded forward pass, run on four batches of exchanged halves at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pilotage.proof.watching.splitting.forward_record import Operation, tensors_of
from pilotage.torch_private import tree_map

__all__ = ["Replay"]

_RANDOM = ("dropout", "native_dropout", "bernoulli", "rand", "normal_", "uniform", "empty", "new_empty")
_NORMALISING = ("batch_norm",)

_ALLOWED = {torch.float64: 1e-9, torch.float32: 5e-6}
"""Differences that rounding makes, relative to the largest element."""


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


class Replay:
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
        self._last_use = {id(v): n for n, each in enumerate(operations) for v in tensors_of((each.args, each.kwargs))}

    def first_dependence(self) -> Operation | None:
        """The operation at which samples are first mixed, if the loss depends on it."""
        wanted, found = self._feeding_root(), None
        for number, each in enumerate(self._operations):
            given, results = tensors_of((each.args, each.kwargs)), tensors_of(each.results)
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
            if any(id(value) in wanted for value in tensors_of(each.results)):
                wanted |= {id(value) for value in tensors_of((each.args, each.kwargs))}
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
        results = [tensors_of(self._call(operation, run)) for run in range(4)]
        for value, *runs in zip(tensors_of(operation.results), *results, strict=False):
            self._values[id(value)] = tuple(runs)
            self._rows.pop(id(value), None)

    def _normalises(self, operation: Operation) -> bool:
        if any(name in operation.name for name in _NORMALISING):
            return True
        given = tensors_of((operation.args, operation.kwargs))
        return bool(self._normalising) and any(value.data_ptr() in self._normalising for value in given)

    def _keep_rows(self, operation: Operation) -> None:
        """Keep the rows that the operation gave for the whole batch, and exchange them as those of its argument."""
        given = [value for value in tensors_of((operation.args, operation.kwargs)) if id(value) in self._values]
        alike = {tuple(value.shape): value for value in given}
        for value in tensors_of(operation.results):
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
        for value in tensors_of(operation.results):
            runs = self._values.get(id(value))
            if runs is None or not runs[0].is_floating_point() or len({each.shape for each in runs}) > 1:
                continue
            allowed = self._allowed(runs[0], operation)
            changes = [_differences(other, runs[0]) > allowed for other in runs[1:]]
            mixed = changes[0] & changes[1] & changes[2]
            if not bool(mixed.any()):
                self._mixed_by.pop(id(value), None)
                continue
            given = tensors_of((operation.args, operation.kwargs))
            before = [self._mixed_by[id(each)] for each in given if id(each) in self._mixed_by]
            self._mixed_by[id(value)] = before[0] if before else operation
            self._mixed_by.setdefault(id(tensors_of(operation.results)[0]), self._mixed_by[id(value)])
            mixes = mixes or bool((mixed & (_unexplained(*runs) > allowed)).any())
        return mixes

    def _allowed(self, value: Tensor, operation: Operation | None = None) -> float:
        """The difference that rounding makes; a sum of large numbers may be small."""
        values = [value]
        for each in () if operation is None else tensors_of((operation.args, operation.kwargs)):
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
