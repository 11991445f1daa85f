"""The state of a watched process: the update that is being made, and what was recorded so far."""

from __future__ import annotations

import atexit
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any, NoReturn

from pilotage.proof.watching.patching import replace_function
from pilotage.proof.watching.record import RecordFile
from pilotage.proof.watching.settings import WatchSettings

if TYPE_CHECKING:
    from types import TracebackType

    from pilotage.proof.watching.loaders import Load

__all__ = ["EnoughSteps", "NamedWeights", "Pending", "Watch", "mean_loss"]

Row = list[Any]
"""Fields of an update or a batch without their names, which take longer to write than all else; `records` has them."""

EXTRA_UPDATES, _EXTRA_EPOCHS = 20, 100
"""How many more updates a script may make on its way to its own end, and how many epochs it may begin without one."""


_STOPS = 3
"""How many times a script may catch the exception that ends it."""

_EARLY_DIGESTS = 3
"""How many updates of a script may be digested because it might change the weights after them."""

_MOST_HANDED_OUT = 10_000
"""How many tensors in the memory of weights are kept until the next update."""

_SUMMARY_SECONDS = 2.0
"""How often the summary of a process is written."""


class EnoughSteps(SystemExit):
    """Ends a script that continues to train after the last recorded update."""


class Pending:
    """What has happened since the last update."""

    # Defaults of the class, since one of these is made in each step.
    loader: int | None = None
    """The loader whose batch went into the last forward pass before backward."""
    used = 0
    """How many of the batches came before the last backward pass."""
    backwards = 0
    exchanges = 0
    asked: Sequence[Any] = ()
    """Losses whose gradients a script has asked for by ``torch.autograd.grad``."""

    def __init__(self) -> None:
        self.losses: list[Any] = []
        """Tensors of one element: what each backward pass started from."""
        self.batches: list[Load] = []
        """What loaders have yielded."""
        self.facts: dict[str, Any] = {}
        """Other facts about this update."""


class NamedWeights(list[tuple[str, Any]]):
    """Weights by name. A program makes one list of them, since its weights stay the same tensors."""

    @cached_property
    def kind(self) -> list[Any]:
        """Names, shapes and devices."""
        return [(name, tensor.shape, tensor.device) for name, tensor in self]


class Watch:
    """Counts updates and writes the record; the hooks of torch and of the engine report to it.

    Large because everything that hooks share about a process is here.
    """

    def __init__(self, settings: WatchSettings) -> None:
        self.settings = settings
        self.record = RecordFile(settings.folder)
        # Plain attributes, since hooks ask for them several times in each step.
        self.updates = 0
        """Updates so far, the unrecorded ones too."""
        self.is_stopping = settings.steps <= 0
        """Whether enough updates were recorded."""
        self.is_digested = not self.is_stopping
        """Whether the update that comes next is recorded with a digest of the weights."""
        self.pending = Pending()
        self.is_in_program = False
        """Whether the engine is running a program's step right now."""
        self.weights: Callable[[], Iterable[tuple[str, Any]]] | None = None
        """The weights that the last update has changed, by name."""
        self.summaries: list[Callable[[], dict[str, Any]]] = []
        """What to write about the whole process from time to time, and at its end."""
        self.at_end: list[Callable[[], None]] = []
        """What to look at when the script has ended."""
        self.trained_loaders: set[int] = set()
        """Loaders whose batches went into an update."""
        self.batches_of_update = 1
        """How many batches the last recorded update took, to judge by its backward passes."""
        self._late_epochs: Counter[int] = Counter()
        """How many epochs began after each update that is not recorded any more."""
        self._steps: list[tuple[int, Pending, float, Mapping[str, Any]]] = []
        """Updates that are still to be written: number, what came before each, the time, and what is known of it."""
        self._summed = time.monotonic()
        """When the last summary was written."""
        self._has_begun = False
        self._stops = 0
        """How many times the script continued to train after the watch had ended it."""
        self._error: str | None = None
        self.initial: list[dict[str, Any]] = []
        """The digest of the weights before the first update."""
        self.has_start = False
        """Whether that was taken. It may be empty."""
        self._kind: list[Any] = []
        """Names, shapes and devices of the weights that were digested last."""
        self._tensors: list[dict[str, Any]] = []
        """Their description."""
        self._digested: int | None = None
        """The update after which weights were digested last."""
        self._sketches: list[tuple[int, Any]] = []
        """Sketches of these weights that are still to be written, each with the number of its update."""
        self.is_undigested = False
        """Whether the last recorded update has no digest of the weights yet; it gets one if the script ends here."""
        self.versions: list[int] | None = None
        """How often the weights of the last update had been written to after it; None if nothing else can write."""
        self._early_digests = 0
        """How often weights were digested because the script might write to them uncounted."""
        self._handed_out: list[Any] = []
        """Tensors in the memory of the weights that the script got since the last update; they count writes."""

    def note(self, event: str, /, **fields: Any) -> None:
        """Write an event other than an update."""
        self.begin()
        self.record.add(event, after=self.updates, **fields)

    def before_update(self, weights: Callable[[], Iterable[tuple[str, Any]]]) -> None:
        """Digest the weights before the first update."""
        if not self.has_start:
            from pilotage.proof.weights import complete_digests

            self.begin()
            self.has_start = True
            self._digest(0, _listed(weights()))
            (sketches,) = self._write_sketches()
            self.record.flush()
            self.initial = complete_digests(self._tensors, sketches)

    def close(self, facts: Mapping[str, Any]) -> None:
        """An update was made: record it, and stop the script when it was the last one.

        Updates that are closed with the same ``facts`` are written with them once.
        """
        moment = time.perf_counter()
        pending, self.pending = self.pending, Pending()
        if pending.loader is not None:
            self.trained_loaders.add(pending.loader)
        digested, was_stopping = self.is_digested, self.is_stopping
        self.updates += 1
        following, last = self.updates + 1, self.settings.steps
        self.is_stopping = self.updates >= last
        # Each of the first ones, since a script may end before its tenth update.
        is_due = following <= 10 or following % 10 == 0 or following == last
        self.is_digested = is_due and not self.is_stopping
        if not was_stopping:
            self._steps.append((self.updates, pending, moment, facts))
            self.is_undigested = not digested and self.weights is not None
            self._handed_out.clear()
            if digested and self.weights is not None:
                self._digest(self.updates, _listed(self.weights()))
            # Many at once: code that rarely runs takes several times as long between two steps.
            if self.updates <= 3 or self.is_stopping or moment > self.record.due:
                self.write()
                self.batches_of_update = max(1, pending.backwards)
        if self.updates >= self.settings.steps + EXTRA_UPDATES:
            self._stop()

    def begin_late_epoch(self) -> None:
        """A training loader begins an epoch after the last recorded update: end a script that does so for ever."""
        self._late_epochs[self.updates] += 1
        if self._late_epochs[self.updates] > _EXTRA_EPOCHS:
            self._stop()

    def join(self, rates: list[float]) -> None:
        """Another optimizer has made a part of the last update: note its rates, and digest the weights again."""
        if self.updates > self.settings.steps:
            return
        self.record.wait("joined", step=self.updates, rates=rates)
        if self._digested == self.updates and self.weights is not None:
            self._digest(self.updates, _listed(self.weights()))
        if self.updates <= 3 or self.is_stopping:
            self.write()

    def expect_change(self, handed_out: Any = None, *, is_counted: bool = False) -> None:
        """The script may change the weights from here on: digest them, if that was not done.

        A digest each time would slow down scripts that come here in every step. For those, writes are counted instead:
        torch counts those through the tensor ``handed_out``, or ``is_counted`` says that it counts the change itself.
        """
        if self._early_digests < _EARLY_DIGESTS or len(self._handed_out) >= _MOST_HANDED_OUT:
            from pilotage.torch_private import disable_current_modes

            self._early_digests += 1
            # The script may be tracing, or computing without values.
            with disable_current_modes():
                self.digest_last()
        elif handed_out is not None:
            self._handed_out.append(handed_out)
        elif not is_counted or self.versions is None:
            self.is_undigested = False

    def digest_last(self) -> None:
        """Digest the weights after the last update, if that was not done, because the script ends here, for example.

        Weights that were written to since then are left out: they are not those of an update.
        """
        if not self.is_undigested or self.weights is None:
            return
        self.is_undigested = False
        if any(each._version for each in self._handed_out):
            return
        named = _listed(self.weights())
        if self.versions is None or self.versions == [tensor._version for _, tensor in named]:
            self._digest(min(self.updates, self.settings.steps), named)

    def _digest(self, step: int, named: NamedWeights) -> None:
        """Note what the weights are; their names and shapes only when these are new."""
        from pilotage.proof.watching.digests import describe_weights, sketch_weights

        self._digested = step
        if named.kind != self._kind:
            self._write_sketches()
            self._kind, self._tensors = named.kind, describe_weights(named)
            self.record.wait("tensors", tensors=self._tensors)
        self._sketches.append((step, sketch_weights([tensor for _, tensor in named])))

    def _write_sketches(self) -> list[str]:
        """Write the sketches of weights that wait; between two steps this would take several times as long."""
        from pilotage.proof.watching.digests import sketch_texts

        if not self._sketches:
            return []
        texts = sketch_texts([sketch for _, sketch in self._sketches])
        for (step, _), text in zip(self._sketches, texts, strict=True):
            self.record.wait("weights", step=step, sketches=text)
        self._sketches = []
        return texts

    def write(self) -> None:
        """Write the updates so far, and the present summary."""
        self.begin()
        if self._steps:
            groups: list[tuple[Mapping[str, Any], list[Row]]] = []
            losses = iter(_numbers([loss for _, pending, _, _ in self._steps for loss in pending.losses]))
            common: Mapping[str, Any] | None = None
            rows: list[Row] = []
            for step, pending, moment, facts in self._steps:
                if facts is not common:
                    common, rows = facts, []
                    groups.append((common, rows))
                loads, skipped = _loads_of(pending)
                own = [next(losses) for _ in pending.losses]
                rows.append([step, own, pending.exchanges, moment, loads, skipped, pending.facts])
            epoch = time.time() - time.perf_counter()
            for common, rows in groups:
                self.record.wait("updates", common=common, epoch=epoch, rows=rows)
            self._steps = []
        self._write_sketches()
        now = time.monotonic()
        if now - self._summed > _SUMMARY_SECONDS or self.updates <= 3 or self.updates >= self.settings.steps:
            self._summed = now
            self.record.wait("summary", updates=self.updates, **self._summary())
        self.record.flush()

    def _summary(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for summary in self.summaries:
            found |= summary()
        return found

    def begin(self) -> None:
        """Write which process this is, once."""
        if self._has_begun:
            return
        self._has_begun = True
        from pilotage.distributed.environments import world_here

        world = world_here()
        self.record.add(
            "process",
            pid=os.getpid(),
            parent=os.getppid(),
            command=sys.orig_argv,
            rank=world.rank,
            size=world.size,
            stage=world.stage,
            started=time.time(),
        )

    # The end of the process

    def follow_end(self) -> None:
        """Record how the process ends, and start over in processes that it forks."""
        atexit.register(self._at_exit)
        os.register_at_fork(after_in_child=self._after_fork)
        before = sys.excepthook

        def failed(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
            self._error = f"{kind.__name__}: {error}"
            before(kind, error, trace)

        sys.excepthook = failed
        replace_function(os, "_exit", self._exiting)

    def _exiting(self, original: Callable[[int], NoReturn]) -> Callable[[int], NoReturn]:
        """Write what waits before a process ends at once, as those do that were forked by multiprocessing."""

        def leave(status: int) -> NoReturn:
            with suppress(Exception):
                if self._has_begun and status:
                    self.write()
                elif self._has_begun:
                    self.digest_last()
                    self.end("finished")
            original(status)

        return leave

    def _at_exit(self) -> None:
        if self._has_begun:
            self.digest_last()
            for look in self.at_end:
                look()
            self.end("failed" if self._error is not None else "finished")

    def end(self, how: str) -> None:
        """Write the last lines."""
        self.write()
        self.record.wait("summary", updates=self.updates, **self._summary())
        self.record.add("end", how=how, error=self._error, updates=self.updates)
        self._has_begun = False
        self._steps = []

    def _stop(self) -> None:
        """End a script that continues to train."""
        if not self._stops:
            self.end("stopped")
        self._stops += 1
        # A thread that ends alone may leave the script waiting for it.
        if self._stops > _STOPS or current_thread() is not main_thread():
            os._exit(0)
        raise EnoughSteps(0)

    def _after_fork(self) -> None:
        self.record.forget_parent()
        self._has_begun = self.is_undigested = False
        self._steps, self._sketches, self._handed_out = [], [], []


def _listed(named: Iterable[tuple[str, Any]]) -> NamedWeights:
    return named if isinstance(named, NamedWeights) else NamedWeights(named)


def mean_loss(loss: Any) -> Any:
    """The mean of a loss, as a tensor where it is; half-precision types are averaged in float32."""
    loss = loss.detach()
    return (loss.float() if loss.dtype.itemsize < 4 else loss).mean()


def _numbers(losses: list[Any]) -> list[float]:
    """Losses as numbers: tensors of one element, fetched together, since each of them costs an operation or two."""
    if len(losses) > 1 and all(hasattr(loss, "dim") and not loss.dim() for loss in losses):
        import torch

        if len({(loss.device, loss.dtype) for loss in losses}) == 1:
            return [float(value) for value in torch.stack(losses).tolist()]
    return [float(mean_loss(loss)) if hasattr(loss, "detach") else float(loss) for loss in losses]


def _loads_of(pending: Pending) -> tuple[list[Row], int]:
    """The batches of an update, and how many samples of others were skipped."""
    rows, skipped = [], 0
    for batch in pending.batches:
        if batch.loader == pending.loader:
            if batch.is_skipped:
                skipped += batch.samples
            else:
                rows.append(batch.as_row())
    return rows, skipped
