"""Follows a script while it runs: its models, its loaders, and whether enough was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from pilotage.profiling.request import Request
from pilotage.profiling.subject import Enough, Facts, Stage, Subject
from pilotage.profiling.timeline import HostTimeline
from pilotage.proof.watching.after_import import AfterImport
from pilotage.proof.watching.patching import replace_function

__all__ = ["ScriptWatch"]


class ScriptWatch:
    """The state that the hooks of a profile share."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.timeline = HostTimeline()
        self.is_in_program = False
        """Whether the engine is working, whose own calls of torch are not the script's."""
        self.is_loading = False
        """Whether a loader is making a batch, whose operations are not those of the model."""
        self._subjects: dict[int, tuple[object, Subject]] = {}
        """Subjects by the address of the executor or optimizer, which is kept alive."""

    def install(self) -> None:
        """Hook into torch and into the engine."""
        from torch.utils.data import DataLoader

        from pilotage.profiling.eager_watch import EagerWatch
        from pilotage.profiling.program_watch import ProgramWatch

        self.programs = ProgramWatch(self)
        EagerWatch(self).install()
        replace_function(DataLoader, "__iter__", self._iterated)
        AfterImport(
            {
                "pilotage.runtime.executor": self.programs.follow_executor,
                "pilotage.runtime.session": self.programs.follow_session,
                "pilotage.data.loader": lambda module: replace_function(module.Loader, "__iter__", self._iterated),
            }
        ).install()

    def subject_of(self, owner: object) -> Subject | None:
        """The subject of an executor or an optimizer."""
        found = self._subjects.get(id(owner))
        return None if found is None else found[1]

    def new_subject(self, owner: object, facts: Callable[[], Facts]) -> Subject:
        """Begin to profile an executor or an optimizer."""
        subject = Subject(self.request, self.timeline, facts())
        self._subjects[id(owner)] = (owner, subject)
        return subject

    def updated(self, subject: Subject, start: float, end: float, updates: int) -> None:
        """Updates of a subject were made; ends the script when everything about its training is known."""
        subject.after(start, end, updates)
        if subject.is_done and subject.facts.trains:
            raise Enough(0)

    def wait(self) -> None:
        """Wait for the devices of all subjects, so that a call has really ended."""
        from pilotage.profiling.clocks import synchronize

        for _, subject in self._subjects.values():
            synchronize(subject.facts.device)

    def tracing(self, subject: Subject | None) -> AbstractContextManager[object]:
        """Torch's own profiler around the next update, if that is due."""
        folder = self.request.tensorboard
        if subject is None or folder is None or subject.stage is not Stage.TRACING:
            return nullcontext()
        from pilotage.profiling.torch_trace import traced_into

        return traced_into(folder)

    def chosen(self) -> Subject | None:
        """The subject with the most updates: one that the script trains, or else one that it only infers with."""
        subjects = [subject for _, subject in self._subjects.values()]
        return max(reversed(subjects), key=lambda each: (each.facts.trains, each.updates), default=None)

    def _iterated(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def iterate(loader: Any) -> Any:
            if self._is_iterating:
                # Called by a subclass's iterator, which is counted already.
                return original(loader)
            with self._iterating():
                return _Batches(original(loader), self)

        return iterate

    _is_iterating = False

    @contextmanager
    def _iterating(self) -> Iterator[None]:
        self._is_iterating = True
        try:
            yield
        finally:
            self._is_iterating = False


class _Batches:
    """The iterator of a loader, with a clock."""

    def __init__(self, batches: Any, watch: ScriptWatch) -> None:
        self._batches = iter(batches)
        self._watch = watch

    def __iter__(self) -> _Batches:
        return self

    def __next__(self) -> Any:
        self._watch.is_loading = True
        try:
            with self._watch.timeline.activity("next batch"):
                return next(self._batches)
        finally:
            self._watch.is_loading = False

    def __len__(self) -> int:
        return len(self._batches)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batches, name)
