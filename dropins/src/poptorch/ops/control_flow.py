"""Loops and conditions inside of a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from poptorch._errors import createPoptorchError
from poptorch.ops.branches import branch
from poptorch.ops.checks import is_traced, refuse_training, require_list_of_tensors

Body = Callable[..., Tensor | Sequence[Tensor]]


def for_loop(count: int, body: Body, inputs: list[Tensor]) -> list[Tensor]:
    """Call ``body`` ``count`` times, each time on its last result; inference only.

    In a program the loop is unrolled.
    """
    require_list_of_tensors("for_loop()", inputs)
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise ValueError(f"poptorch.for_loop() takes a whole number of iterations (at least 0), not {count!r}.")
    refuse_training("poptorch.for_loop()")
    values = _copies(inputs)
    for _ in range(count):
        results = _as_list("for_loop()", body(*values))
        _require_alike("for_loop(): the body returns", results, "it is given", values)
        values = _copies(results)
    return values


def cond(
    condition: Tensor,
    then_body: Body,
    then_inps: list[Tensor],
    else_body: Body,
    else_inps: list[Tensor],
) -> list[Tensor]:
    """What one of two functions returns, chosen by a tensor's value at run time; inference only.

    In a program both are computed and one result is selected; prints and host functions of the other do not run.
    """
    require_list_of_tensors("cond()", then_inps)
    require_list_of_tensors("cond()", else_inps)
    if not isinstance(condition, Tensor) or condition.numel() != 1:
        raise ValueError(f"poptorch.cond() takes a tensor with one element as condition, not {condition!r}.")
    refuse_training("poptorch.cond()")
    if not is_traced(condition, *then_inps, *else_inps):
        body, inputs = (then_body, then_inps) if bool(condition) else (else_body, else_inps)
        return _as_list("cond()", body(*_copies(inputs)))
    chosen = condition.reshape(()).to(torch.bool)
    with branch(chosen):
        then_results = _as_list("cond()", then_body(*_copies(then_inps)))
    with branch(chosen.logical_not()):
        else_results = _as_list("cond()", else_body(*_copies(else_inps)))
    _require_alike("cond(): then_body returns", then_results, "else_body returns", else_results)
    return [torch.where(chosen, *pair) for pair in zip(then_results, else_results, strict=True)]


def _copies(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [tensor.clone() for tensor in tensors]


def _as_list(operation: str, results: Any) -> list[Tensor]:
    listed = [results] if isinstance(results, Tensor) else list(results) if isinstance(results, tuple | list) else None
    if listed is None or not all(isinstance(result, Tensor) for result in listed):
        raise createPoptorchError(f"The body of poptorch.{operation} must return tensors, not {results!r}.")
    return listed


def _require_alike(first: str, these: Sequence[Tensor], second: str, those: Sequence[Tensor]) -> None:
    if _described(these) != _described(those):
        raise createPoptorchError(
            f"poptorch.{first} {_described(these)}, but {second} {_described(those)}. Number, shapes and types of the "
            "tensors must be the same."
        )


def _described(tensors: Sequence[Tensor]) -> list[tuple[list[int], torch.dtype]]:
    return [(list(tensor.shape), tensor.dtype) for tensor in tensors]
