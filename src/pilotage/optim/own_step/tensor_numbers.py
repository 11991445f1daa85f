"""Tensors where an optimizer's code expects numbers, so that its learning rate and its counts stay inputs of a program.

Code such as ``param.add_(update, alpha=-lr / (1 - beta ** step))`` was written for numbers of Python. With tensors in
their place, captured code is right at every step. Functions of torch that take only numbers are replaced by equal ones
that take tensors, and so are ``min``, ``max`` and ``math`` in the modules that define the optimizer.
"""

from __future__ import annotations

import builtins
import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode


class TensorNumbers(TorchFunctionMode):
    """Lets functions of torch that take a number take a tensor without dimensions instead."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call a function of torch, or the form of it that takes tensors."""
        given = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if name == "item" and args[0].numel() == 1:
            return args[0].reshape(())
        own = _FORMS.get(name.removeprefix("_foreach_").removesuffix("_"))
        if own is None:
            return func(*args, **given)
        found, args, given = own.number(args, given)
        if not isinstance(found, Tensor):
            return func(*args, **given) if found is None else func(*args, **given, **{own.keyword: found})
        if not name.startswith("_foreach_"):
            return own.compute(found, *args, in_place=name.endswith("_"), **given)
        return [own.compute(found, *each, in_place=name.endswith("_"), **given) for each in zip(*args, strict=True)]


class _Form:
    """A function of torch with a factor that has to be a number."""

    def __init__(self, keyword: str, position: int, compute: Callable[..., Tensor]) -> None:
        self.keyword = keyword
        self._position = position
        self.compute = compute

    def number(self, args: Sequence[Any], given: dict[str, Any]) -> tuple[Any, Sequence[Any], dict[str, Any]]:
        """The factor, and the other arguments."""
        if self.keyword in given:
            rest = {name: value for name, value in given.items() if name != self.keyword}
            return given[self.keyword], args, rest
        if len(args) > self._position and isinstance(args[self._position], Tensor):
            return args[self._position], args[: self._position], given
        return None, args, given


def _add(factor: Tensor, to: Tensor, other: Any, *, in_place: bool, sign: float = 1.0) -> Tensor:
    if not isinstance(other, Tensor):
        other = torch.as_tensor(other, dtype=to.dtype, device=to.device)
    return to.addcmul_(other, factor, value=sign) if in_place else to.addcmul(other, factor, value=sign)


def _subtract(factor: Tensor, to: Tensor, other: Any, *, in_place: bool) -> Tensor:
    return _add(factor, to, other, in_place=in_place, sign=-1.0)


def _add_product(factor: Tensor, to: Tensor, first: Tensor, second: Tensor, *, in_place: bool) -> Tensor:
    return _add(factor, to, first * second, in_place=in_place)


def _add_quotient(factor: Tensor, to: Tensor, first: Tensor, second: Tensor, *, in_place: bool) -> Tensor:
    return _add(factor, to, first / second, in_place=in_place)


def _lerp(weight: Tensor, start: Tensor, end: Tensor, *, in_place: bool) -> Tensor:
    weight = weight.to(start.dtype)
    return start.lerp_(end, weight) if in_place else start.lerp(end, weight)


_FORMS = {
    "add": _Form("alpha", 99, _add),
    "sub": _Form("alpha", 99, _subtract),
    "addcmul": _Form("value", 3, _add_product),
    "addcdiv": _Form("value", 3, _add_quotient),
    "lerp": _Form("weight", 2, _lerp),
}
"""Functions whose factor has to be a number, or whose weight has to have the type of the other tensors."""


def smallest(*given: Any, **settings: Any) -> Any:
    """``min`` that takes tensors without dimensions beside numbers."""
    return _extreme(torch.minimum, builtins.min, given, settings)


def largest(*given: Any, **settings: Any) -> Any:
    """``max`` that takes tensors without dimensions beside numbers."""
    return _extreme(torch.maximum, builtins.max, given, settings)


def _extreme(of_tensors: Callable[..., Tensor], of_numbers: Callable[..., Any], given: Any, settings: Any) -> Any:
    first = next((each for each in given if isinstance(each, Tensor)), None)
    if len(given) < 2 or first is None:
        return of_numbers(*given, **settings)
    kind = torch.promote_types(first.dtype, torch.float64)
    return reduce(of_tensors, [torch.as_tensor(each, dtype=kind, device=first.device) for each in given])


class TensorMath:
    """The module ``math``, with roots, powers, exponentials and logarithms of tensors."""

    def __getattr__(self, name: str) -> Any:
        of_numbers, of_tensors = getattr(math, name), _TENSOR_FUNCTIONS.get(name)
        if of_tensors is None:
            return of_numbers

        def either(*given: Any) -> Any:
            return (of_tensors if any(isinstance(each, Tensor) for each in given) else of_numbers)(*given)

        return either


_TENSOR_FUNCTIONS: Mapping[str, Callable[..., Tensor]] = {
    "sqrt": torch.sqrt,
    "pow": torch.pow,
    "exp": torch.exp,
    "log": torch.log,
    "tanh": torch.tanh,
    "fabs": torch.abs,
}


@contextmanager
def tensors_as_numbers(optimizer: type[torch.optim.Optimizer]) -> Iterator[None]:
    """Let the code of an optimizer's class compute with tensors where it expects numbers."""
    replaced: list[tuple[dict[str, Any], dict[str, Any]]] = []
    try:
        for namespace in _namespaces(optimizer):
            shadowed: dict[str, Any] = {"min": smallest, "max": largest}
            shadowed = {each: own for each, own in shadowed.items() if each not in namespace}
            if namespace.get("math") is math:
                shadowed["math"] = TensorMath()
            replaced.append((namespace, {each: namespace[each] for each in shadowed if each in namespace}))
            replaced.append((namespace, dict.fromkeys(shadowed.keys() - namespace.keys(), _ABSENT)))
            namespace.update(shadowed)
        with TensorNumbers():
            yield
    finally:
        for namespace, before in replaced:
            for each, value in before.items():
                if value is _ABSENT:
                    namespace.pop(each, None)
                else:
                    namespace[each] = value


def _namespaces(optimizer: type[torch.optim.Optimizer]) -> list[dict[str, Any]]:
    """The globals of the functions that an optimizer's class and its bases define."""
    members = [each for kind in optimizer.__mro__ for each in vars(kind).values() if inspect.isfunction(each)]
    found = [inspect.unwrap(each).__globals__ for each in members]
    return list({id(each): each for each in found}.values())


_ABSENT = object()
