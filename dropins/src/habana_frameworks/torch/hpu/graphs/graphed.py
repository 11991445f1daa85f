"""Functions and modules captured with sample arguments, forward and backward."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from habana_frameworks.torch.hpu.graphs.captured import CapturedTraining
from habana_frameworks.torch.hpu.graphs.signatures import signatures
from pilotage.engine import tree_flatten, tree_leaves

_HOOKS = ("_backward_hooks", "_forward_hooks", "_forward_pre_hooks")


def make_graphed_callables(
    callables: Any,
    sample_args: Sequence[Any],
    warmups: int = 0,
    allow_unused_input: bool = False,
    asynchronous: bool = False,
    disable_tensor_cache: bool = False,
    dry_run: bool = False,
) -> Any:
    """Run functions or modules as HPU graphs captured with sample arguments, forward and backward.

    Takes one callable with a tuple of tensors, or several with a tuple of tuples, and returns as many. The last three
    options and the warm-up change speed and memory on the card, but no results.
    """
    if not isinstance(callables, tuple):
        return _graphed(callables, sample_args, allow_unused_input)
    if len(callables) != len(sample_args):
        raise ValueError(
            f"{len(callables)} callables and {len(sample_args)} tuples of arguments were given. Give one for each."
        )
    return tuple(_graphed(each, args, allow_unused_input) for each, args in zip(callables, sample_args, strict=True))


def _check(function: Any, sample_args: Sequence[Any]) -> None:
    """Raise AssertionError, as the vendor's function does, for what a graph cannot contain."""
    if not all(isinstance(each, Tensor) for each in tree_leaves(tuple(sample_args))):
        raise AssertionError("The sample arguments of a graphed callable must all be tensors.")
    if isinstance(function, nn.Module):
        if any(vars(function).get(name) for name in _HOOKS):
            raise AssertionError("A module with hooks cannot be graphed. Register the hooks afterwards.")
        if any(each.requires_grad for each in function.buffers()):
            raise AssertionError("A module with a buffer that requires a gradient cannot be graphed.")


def _graphed(function: Any, sample_args: Sequence[Any], allow_unused_input: bool) -> Any:
    _check(function, sample_args)
    is_module = isinstance(function, nn.Module)
    run = function.forward if is_module else function
    parameters = list(function.parameters()) if is_module else []
    leaves, shape = tree_flatten((tuple(sample_args), {}))
    expected = signatures(leaves)
    training = is_module and function.training
    captured = CapturedTraining(run, parameters, leaves, shape, allow_unused_input=allow_unused_input)

    @functools.wraps(run)
    def replaying(*args: Any) -> Any:
        # As on the card, a module in the other mode runs without its graph.
        if is_module and function.training != training:
            return run(*args)
        given, _ = tree_flatten((args, {}))
        if signatures(given) != expected:
            raise RuntimeError(f"Shapes are fixed: the graph was captured for {expected}, not for {signatures(given)}.")
        return captured(given)

    if not is_module:
        return replaying
    function.forward = replaying
    return function


class GraphModel(nn.Module):
    """A module as two graphs, forward and backward, captured at its first call."""

    def __init__(
        self,
        model: nn.Module,
        allow_unused_input: bool = False,
        asynchronous: bool = False,
        disable_tensor_cache: bool = False,
        dry_run: bool = False,
    ) -> None:
        super().__init__()
        self.model = model
        self._allow_unused_input = allow_unused_input
        self._captured: CapturedTraining | None = None

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the module, with a graph if gradients are on."""
        if not torch.is_grad_enabled():
            return self.model(*args, **kwargs)
        leaves, shape = tree_flatten((args, kwargs))
        if self._captured is None:
            self._captured = CapturedTraining(
                self.model, list(self.model.parameters()), leaves, shape, allow_unused_input=self._allow_unused_input
            )
        return self._captured(leaves)
