"""Data loaders of a watched process: where they are made, what they yield, and when they stop.

Shuffled loaders draw an order that depends on the seed, the epoch and the length of the data set only, so that two
scripts get the same one however many random numbers they have drawn before. Batches of several processes are divided so
that together they are the batch that one process would get.
"""

from __future__ import annotations

import gc
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from threading import get_ident, main_thread
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, RandomSampler, Subset

from pilotage.proof.watching.ahead import Places, places_of
from pilotage.proof.watching.digests import content_digest, picked_elements, sample_digests, tensors_in
from pilotage.proof.watching.lines import expects_no_end, users_line
from pilotage.proof.watching.patching import replace_function
from pilotage.proof.watching.random_numbers import reseed, shared_order
from pilotage.proof.watching.splitting.check import SplitCheck
from pilotage.proof.watching.watch import Watch

__all__ = ["LoaderWatch", "next_epoch"]

_LATER_BATCHES = 3
"""How many batches a loader that trained nothing yields once enough updates were made, for an evaluation."""


class Load:
    """One batch that a loader yielded."""

    # Defaults of the class, since one of these is made in each step.
    content: list[float] | None = None
    picked: Sequence[Tensor] = ()
    """Elements that are digested when the batch is written, together with those of other batches."""
    tensors: Sequence[Tensor] = ()
    places: Places = ()
    """Where the tensors lie, in the first updates."""
    is_skipped = False
    is_taken = False
    """Whether it went into a backward pass, where a script loads ahead."""
    is_last = False
    """Whether its epoch ends with it."""

    def __init__(self, loader: int, epoch: int, indices: list[int] | None, samples: int) -> None:
        self.loader = loader
        self.epoch = epoch
        self.indices = indices
        self.samples = samples
        self.thread = get_ident()
        """The thread that got it."""

    def pick(self) -> None:
        """Copy the tensors before they are digested, since the script may change the tensors later."""
        self.picked = picked_elements(self.tensors)

    def let_go(self) -> None:
        """Digest samples without indices, and free the tensors."""
        if self.indices is None:
            self.content = sample_digests(self.tensors)
        self.tensors = ()

    def part(self, number: int, parts: int) -> Load:
        """One of several equal parts."""
        size = self.samples // parts
        start = number * size
        indices = None if self.indices is None else self.indices[start : start + size]
        found = Load(self.loader, self.epoch, indices, size)
        if self.indices is None and self.content is not None:
            found.content = self.content[start : start + size]
        return found

    def as_row(self) -> list[Any]:
        """What the record keeps, in the order of `records.LOAD_FIELDS`."""
        content = content_digest(self.picked) if self.picked else self.content
        return [self.loader, self.epoch, self.samples, self.indices, content]


def _size_of(tensors: Sequence[Tensor]) -> int:
    return next((tensor.shape[0] for tensor in tensors if tensor.dim()), 0)


class _Epochs:
    """How many epochs loaders that replace each other have begun."""

    begun = 0


class _Line:
    """A line that makes loaders, as long as one of them replaces the other."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.epochs, self.epochs_of_sampler = _Epochs(), _Epochs()
        self.loader: Callable[[], Any] = lambda: None
        """The last loader, or None if it was freed."""


def next_epoch(owner: Any) -> int:
    """The number of the epoch that a loader or a sampler begins."""
    epochs: _Epochs = owner.__dict__.setdefault("_proof_epochs", _Epochs())
    epochs.begun += 1
    return epochs.begun - 1


class LoaderWatch:
    """Follows all loaders of the process."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._queues: list[deque[list[int]]] = []
        """Where the batch samplers that are started right now put their indices."""
        self.split: SplitCheck | None = None
        """Looks at batches before the script gets them."""
        self._announced = 0
        """How many loaders have a number."""
        self._patched: set[type] = set()
        self._lines: dict[tuple[Any, ...], list[_Line]] = {}
        """The loaders that have begun an epoch, by the line that makes them and what they are."""

    def install(self) -> None:
        """Follow loaders from now on."""
        replace_function(DataLoader, "__init__", self._initialized)
        replace_function(DataLoader, "__iter__", self._iterated)
        self._record_indices(BatchSampler)
        seed = self._watch.settings.seed
        replace_function(RandomSampler, "__iter__", lambda original: _shuffled(original, seed))
        replace_function(DistributedSampler, "__iter__", lambda original: _divided(original, seed))

    def follow_subclass(self, kind: type) -> None:
        """Follow loaders of a class that overrides ``__iter__``."""
        replace_function(kind, "__iter__", self._iterated)

    def _initialized(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def init(loader: Any, *args: Any, **kwargs: Any) -> None:
            factor = self._watch.settings.batch_factor
            if factor > 1 and kwargs.get("batch_sampler") is None:
                args, kwargs = _enlarged(args, kwargs, factor)
            original(loader, *args, **kwargs)
            self._announce(loader)

        return init

    def _announce(self, loader: Any) -> None:
        if "_proof_number" in loader.__dict__:
            return
        number = loader.__dict__["_proof_number"] = self._announced
        self._announced += 1
        sampler = loader.batch_sampler
        if sampler is not None and not isinstance(sampler, BatchSampler):
            self._record_indices(type(sampler))
        line = loader.__dict__["_proof_line"] = users_line(loader)
        self._watch.note("loader", number=number, line=line, **_described(loader))

    def _record_indices(self, kind: type) -> None:
        if kind in self._patched:
            return
        self._patched.add(kind)

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def iterate(sampler: Any) -> Iterator[Any]:
                drawn = iter(original(sampler))
                return _recorded(drawn, self._queues[-1]) if self._queues else drawn

            return iterate

        replace_function(kind, "__iter__", make)

    def _iterated(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def iterate(loader: Any) -> Any:
            if self._queues:  # Called from a subclass's iterator.
                return original(loader)
            self._replace_freed(loader)
            queue: deque[list[int]] = deque()
            self._queues.append(queue)
            try:
                batches = original(loader)
            finally:
                self._queues.pop()
            return _Batches(self, loader, batches, queue)

        return iterate

    def _replace_freed(self, loader: Any) -> None:
        """Let a new loader continue the number and the epochs of one that was made at the same line and freed.

        Scripts that make a loader in each epoch get other orders in later ones, like those that keep theirs.
        """
        line = loader.__dict__.get("_proof_line")
        if line is None or "_proof_epochs" in loader.__dict__:
            return
        known = self._lines.setdefault((line, *_described(loader).values()), [])
        if known and all(each.loader() is not None for each in known):
            # Loaders in reference cycles are freed at different times in different scripts.
            gc.collect()
        freed = next((each for each in known if each.loader() is None), None)
        if freed is None:
            freed = _Line(self.number_of(loader))
            known.append(freed)
        freed.loader = weakref.ref(loader)
        loader.__dict__["_proof_number"], loader.__dict__["_proof_epochs"] = freed.number, freed.epochs
        # A sampler that the script keeps counts by itself.
        if hasattr(loader.sampler, "__dict__"):
            loader.sampler.__dict__.setdefault("_proof_epochs", freed.epochs_of_sampler)

    def number_of(self, loader: Any) -> int:
        """The number under which a loader is recorded."""
        self._announce(loader)
        return int(loader.__dict__["_proof_number"])

    def may_yield(self, number: int, epoch_began_late: bool, yielded: int) -> bool:
        """Whether a loader continues once enough updates were made."""
        watch = self._watch
        if number not in watch.trained_loaders:
            return yielded < _LATER_BATCHES
        if epoch_began_late and not yielded:
            watch.begin_late_epoch()
        # As many as an update takes: a script may count its updates, however many epochs they need.
        return epoch_began_late and yielded < watch.batches_of_update

    def look_at(self, load: Load) -> None:
        """Look at the values of a batch before the script gets it."""
        watch = self._watch
        if watch.updates < 2:
            load.places = places_of(load.tensors)
        if watch.is_digested and load.indices is not None and not watch.is_stopping:
            load.pick()
        if self.split is not None and not self.split.is_over:
            self.split.at_batch(load.tensors)
        load.let_go()

    def may_seed(self, *, is_first: bool) -> bool:
        """Whether this thread trains; another one must not change random numbers while it does."""
        if is_first or self.split is None:
            return True
        return get_ident() == (self.split.thread or main_thread().ident)

    @property
    def looks_at_splits(self) -> bool:
        """Whether the tensors of batches are needed to see what a split changes."""
        return self.split is not None and not self.split.is_over


class _Batches:
    """The iterator of a loader."""

    def __init__(self, owner: LoaderWatch, loader: Any, batches: Any, queue: deque[list[int]]) -> None:
        self._owner = owner
        self._batches = iter(batches)
        self._queue = queue
        self._dataset = loader.dataset
        self._number = owner.number_of(loader)
        self._epoch = next_epoch(loader)
        self._yielded = 0
        self._count = _count(self._batches)
        self._last: Load | None = None
        self._watch, self._seed = owner._watch, owner._watch.settings.seed
        self._began_late = self._watch.is_stopping

    def __iter__(self) -> _Batches:
        return self

    def __next__(self) -> Any:
        owner, watch = self._owner, self._watch
        if watch.is_stopping and not (
            owner.may_yield(self._number, self._began_late, self._yielded) or expects_no_end()
        ):
            raise StopIteration
        seeds = owner.may_seed(is_first=not self._yielded)
        if seeds:
            reseed(self._seed, watch.updates, -1 - self._yielded)
        try:
            batch = next(self._batches)
        except StopIteration:
            self._end(seeds=seeds)
            raise
        self._yielded += 1
        indices = self._queue.popleft() if self._queue else None
        if not watch.is_in_program:
            drawn, pending = _plain(indices, self._dataset), watch.pending
            load = Load(self._number, self._epoch, drawn, 0 if drawn is None else len(drawn))
            # Looking for tensors takes as long as all the rest, and most batches are known by their indices.
            if drawn is None or watch.is_digested or owner.looks_at_splits:
                load.tensors = found = tensors_in(batch)
                load.samples = load.samples or _size_of(found)
                owner.look_at(load)
            if self._yielded == self._count:
                load.is_last = True
            self._last = load
            # Not `pending`: another thread may have made an update since then.
            if not watch.is_stopping:
                watch.pending.batches.append(load)
            if seeds:
                reseed(self._seed, watch.updates, pending.backwards)
        return batch

    def _end(self, *, seeds: bool) -> None:
        """Called at the end of an epoch; a batch that was loaded ahead may still be trained on."""
        if self._last is not None:
            self._last.is_last = True
        if seeds and not self._watch.is_in_program:
            reseed(self._seed, self._watch.updates, self._watch.pending.backwards)

    def __len__(self) -> int:
        return len(self._batches)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batches, name)


def _count(batches: Any) -> int | None:
    """How many batches there will be, if that is known."""
    try:
        return len(batches)
    except Exception:
        # The script's own sampler answers, and may raise anything, such as OverflowError if it never ends.
        return None


def _plain(indices: Any, dataset: Any) -> list[int] | None:
    """Indices into the whole data set, where a loader reads a subset of it."""
    if type(indices) is list and not isinstance(dataset, Subset) and set(map(type, indices)) == {int}:
        return indices
    try:
        found = [int(index) for index in indices]
        while isinstance(dataset, Subset):
            found = [int(dataset.indices[index]) for index in found]
            dataset = dataset.dataset
    except (TypeError, ValueError, IndexError):
        return None
    return found


def _recorded(drawn: Iterator[Any], queue: deque[list[int]]) -> Iterator[Any]:
    for indices in drawn:
        queue.append(indices)
        yield indices


def _described(loader: Any) -> dict[str, Any]:
    def known(count: Callable[[], int]) -> int | None:
        try:
            return int(count())
        except (TypeError, NotImplementedError, AttributeError, ValueError):
            return None

    sampler = loader.sampler
    return {
        "kind": type(loader).__name__,
        "batch_size": getattr(loader, "combined_batch_size", None) or loader.batch_size,
        "drop_last": bool(getattr(loader, "drops_incomplete", loader.drop_last)),
        "dataset": known(lambda: len(loader.dataset)),
        "drawn": known(lambda: len(sampler)),
        "batches": known(lambda: len(loader)),
        "sampler": type(sampler).__name__,
        "replacement": bool(getattr(sampler, "replacement", False)),
    }


def _enlarged(args: tuple[Any, ...], kwargs: dict[str, Any], factor: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if len(args) > 1:
        size = args[1]
        return (args[0], size * factor if size else size, *args[2:]), kwargs
    size = kwargs.get("batch_size", 1)
    return args, {**kwargs, "batch_size": size * factor if size else size}


def _shuffled(original: Callable[..., Any], seed: int) -> Callable[..., Any]:
    def iterate(sampler: Any) -> Iterator[int]:
        if sampler.replacement or not len(sampler.data_source):
            return iter(original(sampler))
        count = len(sampler.data_source)
        epoch = next_epoch(sampler)
        rounds = -(-sampler.num_samples // count)
        drawn = torch.cat([shared_order(seed, epoch * rounds + number, count) for number in range(rounds)])
        return iter(drawn[: sampler.num_samples].tolist())

    return iterate


def _divided(original: Callable[..., Any], seed: int) -> Callable[..., Any]:
    def iterate(sampler: Any) -> Iterator[int]:
        if not sampler.shuffle:
            return iter(original(sampler))
        order = shared_order(seed, sampler.epoch, len(sampler.dataset)).tolist()
        while len(order) < sampler.total_size:
            order += order[: sampler.total_size - len(order)]
        return iter(order[sampler.rank : sampler.total_size : sampler.num_replicas])

    return iterate
