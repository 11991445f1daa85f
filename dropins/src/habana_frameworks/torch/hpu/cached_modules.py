"""Modules and functions that run as HPU graphs, one per signature of their inputs."""

from __future__ import annotations

import copy
import functools
from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from habana_frameworks.torch.hpu.captured import CapturedInference, CapturedTraining
from pilotage.engine import logger, tree_flatten


def wrap_in_hpu_graph(module: nn.Module, asynchronous: bool = False, disable_tensor_cache: bool = False) -> nn.Module:
    """Run a module for inference as HPU graphs, one per signature of its inputs.

    The two options change speed and memory on the card, but no results.
    """
    forward = module.forward
    captured: dict[Any, CapturedInference] = {}

    @functools.wraps(forward)
    def replaying(*args: Any, **kwargs: Any) -> Any:
        leaves, shape = tree_flatten((args, kwargs))
        signature = (module.training, shape, *_signatures(leaves))
        if signature not in captured:
            captured[signature] = CapturedInference(forward, leaves, shape)
        return captured[signature](leaves)

    module.forward = replaying
    return module


def make_graphed_callables(
    callables: Any, sample_args: Sequence[Any], num_warmup_iters: int = 3, allow_unused_input: bool = False
) -> Any:
    """Run functions or modules as HPU graphs captured with sample arguments, forward and backward.

    Takes one callable with a tuple of tensors, or several with a tuple of tuples, and returns as many. The warm-up for
    the card has no effect here.
    """
    if not isinstance(callables, tuple):
        return _graphed(callables, sample_args, allow_unused_input)
    if len(callables) != len(sample_args):
        raise ValueError(
            f"{len(callables)} callables and {len(sample_args)} tuples of arguments were given. Give one for each."
        )
    return tuple(_graphed(each, args, allow_unused_input) for each, args in zip(callables, sample_args, strict=True))


def _graphed(function: Any, sample_args: Sequence[Any], allow_unused_input: bool) -> Any:
    is_module = isinstance(function, nn.Module)
    run = function.forward if is_module else function
    parameters = list(function.parameters()) if is_module else []
    leaves, shape = tree_flatten((tuple(sample_args), {}))
    expected = _signatures(leaves)
    training = is_module and function.training
    captured = CapturedTraining(run, parameters, leaves, shape, allow_unused_input=allow_unused_input)

    @functools.wraps(run)
    def replaying(*args: Any) -> Any:
        # As on the card, a module in the other mode runs without its graph.
        if is_module and function.training != training:
            return run(*args)
        given, _ = tree_flatten((args, {}))
        if _signatures(given) != expected:
            raise RuntimeError(
                f"Shapes are fixed: the graph was captured for {expected}, not for {_signatures(given)}."
            )
        return captured(given)

    if not is_module:
        return replaying
    function.forward = replaying
    return function


class ModuleCacher:
    """Trains a module as HPU graphs, one per signature of its inputs, up to a maximum number."""

    def __init__(self, max_graphs: int = 10) -> None:
        if max_graphs < 1:
            raise ValueError(f"max_graphs is {max_graphs}. It must be 1 or more.")
        self._max_graphs = max_graphs

    def __call__(
        self,
        model: nn.Module,
        use_lfu: bool = False,
        inplace: bool = False,
        allow_unused_input: bool = False,
        asynchronous: bool = False,
        have_grad_accumulation: bool = False,
        log_frequency: int = 100,
        verbose: bool = False,
    ) -> nn.Module:
        """Return the module, or a second one with the same parameters, with graphs for its forward and backward.

        ``use_lfu`` drops the least frequently used graph instead of the least recently used one. ``asynchronous`` and
        ``have_grad_accumulation`` change speed and memory on the card, but no results.
        """
        forward, kept = model.forward, _Kept(self._max_graphs, use_lfu)
        target = model if inplace else copy.copy(model)

        @functools.wraps(forward)
        def replaying(*args: Any, **kwargs: Any) -> Any:
            leaves, shape = tree_flatten((args, kwargs))
            trains = torch.is_grad_enabled()
            signature = (target.training, trains, shape, *_signatures(leaves))
            captured = kept.get(signature)
            if captured is None:
                captured = (
                    CapturedTraining(
                        forward, list(model.parameters()), leaves, shape, allow_unused_input=allow_unused_input
                    )
                    if trains
                    else CapturedInference(forward, leaves, shape)
                )
                kept.put(signature, captured)
            if verbose and kept.uses.total() % log_frequency == 0:
                logger.info(f"ModuleCacher: {len(kept.graphs)} graphs after {kept.uses.total()} calls.")
            return captured(leaves)

        target.forward = replaying
        return target


class _Kept:
    """Graphs by signature; the least used ones are dropped."""

    def __init__(self, limit: int, by_frequency: bool) -> None:
        self.graphs: dict[Any, Any] = {}
        self.uses: Counter[Any] = Counter()
        self._limit = limit
        self._by_frequency = by_frequency

    def get(self, signature: Any) -> Any:
        self.uses[signature] += 1
        captured = self.graphs.pop(signature, None)
        if captured is not None:
            # Reinsert at the end: the order is that of the last use.
            self.graphs[signature] = captured
        return captured

    def put(self, signature: Any, captured: Any) -> None:
        while len(self.graphs) >= self._limit:
            dropped = min(self.graphs, key=self.uses.__getitem__) if self._by_frequency else next(iter(self.graphs))
            del self.graphs[dropped]
        self.graphs[signature] = captured


def _signatures(leaves: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(_signature(each) for each in leaves)


def _signature(value: Any) -> Any:
    if isinstance(value, Tensor):
        return tuple(value.shape), value.dtype, value.device, value.requires_grad
    return value
