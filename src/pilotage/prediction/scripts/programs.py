"""Stops a script at its first call of a program, and takes the subject of its capture."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from pilotage.data import loader as loaders
from pilotage.prediction.replacing import replaced
from pilotage.prediction.running_programs import subject_of
from pilotage.prediction.scripts.reached import Reached
from pilotage.prediction.subject import Loading
from pilotage.runtime.call import BoundCall
from pilotage.runtime.executor import Executor

__all__ = ["stopping_at_programs"]


@contextmanager
def stopping_at_programs(name: str) -> Iterator[None]:
    """While active, the first call of a program ends the script and returns the subject."""
    loading = _LoadingWatch()

    def compile_for(executor: Executor, call: BoundCall) -> None:
        raise Reached(subject_of(executor, call, name, loading.found(call)))

    with (
        replaced(Executor, "compile_for", compile_for),
        loading.watching(),
    ):
        yield


class _LoadingWatch:
    """How long the loaders of a script take for a batch."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._overlaps = False

    def found(self, call: BoundCall) -> Loading:
        samples = max((tensor.shape[0] for tensor in call.inputs if tensor.dim()), default=1)
        return Loading(sample_seconds=self._seconds / max(1, samples), overlaps=self._overlaps)

    @contextmanager
    def watching(self) -> Iterator[None]:
        plain = torch.utils.data.DataLoader
        with (
            replaced(plain, "__iter__", self._timed(plain.__iter__)),
            replaced(loaders.Loader, "__iter__", self._timed(loaders.Loader.__iter__)),
        ):
            yield

    def _timed(self, original: Callable[[Any], Any]) -> Callable[[Any], Any]:
        watch = self

        def iterate(loader: Any) -> Any:
            items = original(loader)
            overlaps = bool(getattr(loader, "num_workers", 0))
            while True:
                begin = time.perf_counter()
                try:
                    item = next(items)
                except StopIteration:
                    return
                watch._seconds, watch._overlaps = time.perf_counter() - begin, overlaps
                yield item

        return iterate
