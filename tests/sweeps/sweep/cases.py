"""A call to compare, and modules of several calls."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import TreeSpec, tree_flatten, tree_leaves, tree_unflatten

import poptorch

NARROWED = {torch.float64: torch.float32, torch.bfloat16: torch.float32}
"""PopTorch's conversion of inputs."""


@dataclass(frozen=True)
class Case:
    """One sample of one entry."""

    entry: str
    number: int
    call: Callable[..., Any]
    leaves: tuple[Any, ...]
    """The flattened arguments; all tensors are contiguous, as inputs of a wrapper are."""

    structure: TreeSpec
    finish: Callable[[Any], Any]
    """Takes the outputs that have a defined gradient."""

    @classmethod
    def of(
        cls,
        entry: str,
        number: int,
        call: Callable[..., Any],
        arguments: Any,
        finish: Callable[[Any], Any] = lambda outputs: outputs,
    ) -> Case:
        leaves, structure = tree_flatten(arguments)
        return cls(entry, number, call, tuple(map(_plain, leaves)), structure, finish)

    @property
    def defined(self) -> bool:
        """Whether the values of the result are; those of an empty tensor are not."""
        return "empty" not in self.entry

    @property
    def is_half(self) -> bool:
        """Whether it computes in half precision."""
        return any(isinstance(leaf, Tensor) and leaf.dtype is torch.float16 for leaf in self.leaves)

    def run(self, leaves: Sequence[Any], call: Callable[..., Any] | None = None) -> Any:
        args, kwargs = tree_unflatten(list(leaves), self.structure)
        return (call or self.call)(*args, **kwargs)

    def __str__(self) -> str:
        return f"{self.entry}[{self.number}]"


class Inference(nn.Module):
    """Several cases in one module: returns a list of their results."""

    def __init__(self, cases: Sequence[Case]) -> None:
        super().__init__()
        self.cases = tuple(cases)
        self.calls = nn.ModuleList(copy.deepcopy(case.call) for case in cases if isinstance(case.call, nn.Module))
        for number, leaf in self._held():
            self.register_buffer(f"leaf{number}", leaf.clone())

    def inputs(self) -> list[Tensor]:
        """Fresh copies of forward's arguments."""
        return [_copy(leaf) for leaf in self._leaves() if isinstance(leaf, Tensor) and not _is_empty(leaf)]

    def forward(self, *inputs: Tensor) -> list[Any]:
        given, numbers, calls = iter(inputs), iter(range(10**9)), iter(self.calls)
        results = []
        for case in self.cases:
            leaves = [self._leaf(next(numbers), leaf, given) for leaf in case.leaves]
            results.append(case.run(leaves, next(calls) if isinstance(case.call, nn.Module) else None))
        return results

    def _leaf(self, number: int, leaf: Any, given: Iterator[Tensor]) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        return getattr(self, f"leaf{number}") if _is_empty(leaf) else next(given)

    def _leaves(self) -> list[Any]:
        return [leaf for case in self.cases for leaf in case.leaves]

    def _held(self) -> Iterator[tuple[int, Tensor]]:
        """PopTorch refuses inputs without elements, so they are part of the module."""
        return ((n, leaf.detach()) for n, leaf in enumerate(self._leaves()) if _is_empty(leaf))


class Training(nn.Module):
    """Several cases in one module: all tensors that require a gradient are parameters, and the loss is one sum."""

    def __init__(self, cases: Sequence[Case]) -> None:
        super().__init__()
        self.cases = tuple(cases)
        self.calls = nn.ModuleList(copy.deepcopy(case.call) for case in cases if isinstance(case.call, nn.Module))
        self.leaves = nn.ParameterList()
        for leaf in (leaf for case in cases for leaf in case.leaves if isinstance(leaf, Tensor)):
            wanted = leaf.requires_grad
            self.leaves.append(nn.Parameter(_copy(leaf), requires_grad=wanted))

    def forward(self) -> Tensor | None:
        leaves, calls = iter(self.leaves), iter(self.calls)
        losses = []
        for case in self.cases:
            arguments = [next(leaves).clone() if isinstance(leaf, Tensor) else leaf for leaf in case.leaves]
            outputs = case.finish(case.run(arguments, next(calls) if isinstance(case.call, nn.Module) else None))
            losses.extend(_losses(outputs, weighted=case.number % 2 == 0))
        return poptorch.identity_loss(torch.stack(losses), reduction="sum") if losses else None

    def of_each_case(self) -> list[Any]:
        """The parameters and buffers of each case."""
        leaves, calls = iter(self.leaves), iter(self.calls)
        return [
            [
                [next(leaves) for leaf in case.leaves if isinstance(leaf, Tensor)],
                dict(next(calls).state_dict()) if isinstance(case.call, nn.Module) else {},
            ]
            for case in self.cases
        ]


def _losses(outputs: Any, *, weighted: bool) -> Iterator[Tensor]:
    """One number for each differentiable output."""
    for output in tree_leaves(outputs):
        if isinstance(output, Tensor) and output.requires_grad:
            for real in (output.real, output.imag) if output.is_complex() else (output,):
                yield (real * _weights(real) if weighted else real).to(torch.float32).sum()


def _weights(output: Tensor) -> Tensor:
    """Different numbers in reversed memory order, so that gradients are not contiguous."""
    numbers = torch.arange(1, output.numel() + 1, dtype=output.dtype) / max(output.numel(), 1)
    return numbers.reshape(output.shape[::-1]).permute(tuple(reversed(range(output.dim()))))


def _plain(leaf: Any) -> Any:
    if not isinstance(leaf, Tensor) or leaf.layout is not torch.strided:
        return leaf
    dense = leaf.detach().clone(memory_format=torch.contiguous_format)
    return dense.to(NARROWED.get(leaf.dtype, leaf.dtype)).requires_grad_(leaf.requires_grad)


def _copy(leaf: Tensor) -> Tensor:
    return leaf.detach().clone() if leaf.layout is torch.strided else leaf.detach()


def _is_empty(leaf: Any) -> bool:
    return isinstance(leaf, Tensor) and leaf.numel() == 0
