"""Modules and functions that run as HPU graphs for inference, one graph per signature of their inputs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from habana_frameworks.torch.hpu.graphs.captured import CapturedInference
from habana_frameworks.torch.hpu.graphs.signatures import autocast_state, signatures
from pilotage.engine import tree_flatten

_FOR_THE_CARD = ("warmup_mode", "cache_tensors_list")
"""Keywords of a call that only the card uses."""


class _Replaying:
    """A function as graphs, up to a number of them."""

    def __init__(self, function: Callable[..., Any], max_graphs: int | None, mode: Callable[[], object]) -> None:
        self._function = function
        self._max_graphs = max_graphs
        self._mode = mode
        self._captured: dict[Any, CapturedInference] = {}

    def __call__(self, *args: Any, bypass_hpu_graphs: bool = False, **kwargs: Any) -> Any:
        for name in _FOR_THE_CARD:
            kwargs.pop(name, None)
        # These graphs have no gradients, so training runs without them.
        is_training = bool(self._mode()) and torch.is_grad_enabled()
        if bypass_hpu_graphs or is_training:
            return self._function(*args, **kwargs)
        leaves, shape = tree_flatten((args, kwargs))
        key = (self._mode(), autocast_state(), shape, *signatures(leaves))
        if key not in self._captured:
            if self._max_graphs is not None and len(self._captured) >= self._max_graphs:
                return self._function(*args, **kwargs)
            self._captured[key] = CapturedInference(self._function, leaves, shape)
        return self._captured[key](leaves)

    def clear_cache(self) -> None:
        """Discard all graphs."""
        self._captured.clear()

    def clear_inputs(self) -> None:
        """Release the inputs of the graphs on the card; here the recorded operations keep them."""


def wrap_in_hpu_graph(
    module: nn.Module,
    asynchronous: bool = False,
    disable_tensor_cache: bool = False,
    dry_run: bool = False,
    max_graphs: int | None = None,
) -> nn.Module:
    """Run a module for inference as HPU graphs, one per signature of its inputs; training runs without graphs.

    With ``max_graphs`` graphs, further signatures run without one. The other options change speed and memory on the
    card, but no results. Each call returns new tensors; on the card, a call overwrites the results of the previous one.
    """
    forward = module.forward
    replaying = _Replaying(forward, max_graphs, lambda: module.training)
    module.forward = _function_of(replaying, forward)
    module.clear_cache, module.clear_inputs = replaying.clear_cache, replaying.clear_inputs  # type: ignore[assignment]
    return module


def wrap_in_hpu_graph_func(
    func: Callable[..., Any],
    asynchronous: bool = False,
    disable_tensor_cache: bool = False,
    dry_run: bool = False,
    max_graphs: int | None = None,
) -> Callable[..., Any]:
    """Run a function as HPU graphs, like wrap_in_hpu_graph."""
    replaying = _Replaying(func, max_graphs, lambda: None)
    wrapped: Any = _function_of(replaying, func)
    wrapped.clear_cache, wrapped.clear_inputs = replaying.clear_cache, replaying.clear_inputs
    return wrapped  # type: ignore[no-any-return]


def _function_of(replaying: _Replaying, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def run(*args: Any, **kwargs: Any) -> Any:
        return replaying(*args, **kwargs)

    return run
