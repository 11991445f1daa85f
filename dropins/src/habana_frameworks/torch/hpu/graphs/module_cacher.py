"""Modules that train as HPU graphs, one per signature of their inputs."""

from __future__ import annotations

import copy
import functools
import inspect
import os
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

from habana_frameworks._emulation import lazy
from habana_frameworks.torch.hpu.graphs.captured import CapturedTraining
from habana_frameworks.torch.hpu.graphs.signatures import autocast_state, signatures
from pilotage.engine import Warned, log_event, logger, tree_flatten

_FIXED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)


class ModuleCacher(nn.Module):
    """Makes a module train as HPU graphs, one per signature of its inputs, up to a maximum number."""

    def __init__(self, max_graphs: int = 10) -> None:
        super().__init__()
        if max_graphs < 1:
            raise ValueError(f"max_graphs is {max_graphs}. It must be 1 or more.")
        self.max_graphs = max_graphs

    def forward(
        self,
        model: nn.Module,
        use_lfu: bool = False,
        inplace: bool = True,
        allow_unused_input: bool = False,
        asynchronous: bool = False,
        have_grad_accumulation: bool = False,
        log_frequency: int = 100,
        verbose: bool = False,
        disable_tensor_cache: bool = False,
        dry_run: bool = False,
    ) -> nn.Module:
        """Return the module, or with ``inplace=False`` a second one with the same parameters, that trains with graphs.

        Graphs are used in lazy mode, while the module is in training mode and gradients are on. When there are
        ``max_graphs``, other signatures run without one. With ``use_lfu``, only the signatures most frequent between
        ``capture_start()`` and ``capture_end()`` of the returned module get graphs; with ``have_grad_accumulation`` the
        call after ``set_iteration_count(0)`` has a graph of its own. ``asynchronous``, ``disable_tensor_cache`` and
        ``dry_run`` change speed and memory on the card, but no results.
        """
        _check(model)
        if lazy.mode() != "lazy":
            _say_that_eager_mode_has_no_graphs()
        target: Any = model if inplace else copy.copy(model)
        forward = model.forward
        graphs = _Graphs(
            forward,
            model,
            limit=self.max_graphs,
            use_lfu=use_lfu,
            allow_unused_input=allow_unused_input,
            have_grad_accumulation=have_grad_accumulation,
            log_frequency=log_frequency if verbose else None,
        )

        @functools.wraps(forward)
        def replaying(*args: Any, **kwargs: Any) -> Any:
            if target.training and torch.is_grad_enabled() and lazy.mode() == "lazy":
                return graphs(*args, **kwargs)
            return forward(*args, **kwargs)

        target.orig_forward, target.forward = forward, replaying
        target.set_iteration_count = graphs.set_iteration_count
        target.capture_start, target.capture_end = graphs.capture_start, graphs.capture_end
        target.is_hpugraph_tracing = graphs.is_tracing
        return target  # type: ignore[no-any-return]


class _Graphs:
    """The graphs of one module by signature."""

    def __init__(
        self,
        forward: Callable[..., Any],
        model: nn.Module,
        *,
        limit: int,
        use_lfu: bool,
        allow_unused_input: bool,
        have_grad_accumulation: bool,
        log_frequency: int | None,
    ) -> None:
        self._forward, self._model = forward, model
        self._limit, self._use_lfu = limit, use_lfu
        self._allow_unused_input = allow_unused_input
        self._counts_iterations = have_grad_accumulation
        self._log_frequency = log_frequency
        self._captured: dict[Any, CapturedTraining] = {}
        self._uses: Counter[Any] = Counter()
        self._frequent: set[Any] = set()
        self._is_tracing = False
        self._iteration = -1

    def set_iteration_count(self, n: int) -> None:
        """Say which backward pass of an update comes next, from 0."""
        self._iteration = n

    def capture_start(self) -> None:
        """Start counting signatures, without graphs if ``use_lfu`` is set."""
        self._is_tracing = True
        self._uses.clear()

    def capture_end(self) -> None:
        """Stop counting, and choose the most frequent signatures."""
        self._is_tracing = False
        self._frequent = {key for key, _ in self._uses.most_common(self._limit)}

    def is_tracing(self) -> bool:
        """Whether signatures are being counted."""
        return self._is_tracing

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, shape = tree_flatten((args, kwargs))
        first = self._counts_iterations and self._iteration == 0
        key = (first, autocast_state(), shape, *signatures(leaves))
        self._uses[key] += 1
        self._log()
        if key not in self._captured:
            if not self._may_capture(key):
                return self._forward(*args, **kwargs)
            self._captured[key] = CapturedTraining(
                self._forward,
                list(self._model.parameters()),
                leaves,
                shape,
                allow_unused_input=self._allow_unused_input,
            )
        return self._captured[key](leaves)

    def _may_capture(self, key: Any) -> bool:
        if self._use_lfu and key not in self._frequent:
            return False
        return len(self._captured) < self._limit

    def _log(self) -> None:
        calls = self._uses.total()
        if self._log_frequency is not None and calls % self._log_frequency == 0:
            logger.info(f"ModuleCacher: {len(self._captured)} graphs after {calls} calls.")


def _check(model: nn.Module) -> None:
    if isinstance(model, DataParallel | DistributedDataParallel):
        raise AssertionError(
            f"ModuleCacher was given a {type(model).__name__}. Wrap the module first, then make it parallel."
        )
    parameters = inspect.signature(model.forward).parameters.values()
    if fixed := [each.name for each in parameters if each.kind in _FIXED]:
        raise AssertionError(
            f"forward of {type(model).__name__} takes {fixed[0]!r} by position only, and ModuleCacher needs names."
        )


@cache
def _say_that_eager_mode_has_no_graphs() -> None:
    given = os.environ.get("PT_HPU_LAZY_MODE", "0")
    message = f"ModuleCacher: HPU graphs exist in lazy mode only, and PT_HPU_LAZY_MODE is {given}. Training uses none."
    log_event(Warned(message=message))
