"""How a program makes itself known: from the events of its executor, about once a second, without a thread."""

from __future__ import annotations

import re
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict

from pilotage.events import BackendChosen, CompilationProgress, Event, Noted, StepsRun, TierChanged
from pilotage.logs import log_event
from pilotage.monitoring.announcement import Activity, Announcement, Standing
from pilotage.monitoring.run_file import RunFile
from pilotage.options import environment

_SECONDS_BETWEEN_WORDS = 1.0
_BETWEEN_DEVICES = re.compile(r", (?![^(]*\))")


class Presence:
    """Listens to one executor and announces what it does; a program that cannot be announced runs all the same."""

    def __init__(
        self, standing: Standing, hardware: Callable[[str], str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._standing = standing
        self._hardware = hardware
        self._clock = clock
        self._file: RunFile | None = None
        self._is_silent = not environment.run_directories()
        self._has_complained = False
        self._devices: tuple[str, ...] = ()
        self._cards: tuple[str, ...] = ()
        self._label = self._tier = ""
        self._calls = self._steps = self._updates = 0
        self._since: float | None = None
        self._forget()

    def note(self, event: Event) -> None:
        """Take in an event; at most one in a second costs more than counting."""
        if self._is_silent:
            return
        match event:
            case StepsRun():
                self._count(event)
            case BackendChosen():
                self._enter(event.device, event.tier, Activity.COMPILING)
            case CompilationProgress(fraction=1.0):
                self._enter(self._label, self._tier, Activity.STARTING)
            case TierChanged():
                self._tier = event.tier
                self._next_word = 0.0

    @contextmanager
    def entering(self) -> Iterator[None]:
        """While a program is compiled; one that cannot be is announced no more."""
        try:
            yield
        except BaseException:
            self.leave()
            raise

    def leave(self) -> None:
        """The program has left its device; the next step announces it again."""
        if self._file is not None:
            self._file.remove()
        self._forget()

    def _forget(self) -> None:
        self._activity = Activity.STARTING
        self._rate: float | None = None
        self._period = 0.0
        self._next_word = 0.0
        self._last_moment, self._last_calls, self._last_steps = 0.0, self._calls, self._steps

    def _enter(self, label: str, tier: str, activity: Activity) -> None:
        self._look_at(label)
        self._tier, self._activity = tier, activity
        self._announce(self._clock())
        self._next_word = 0.0

    def _count(self, event: StepsRun) -> None:
        self._calls += 1
        self._steps += event.micro_batches
        self._updates += event.updates
        now = self._clock()
        if now < self._next_word:
            return
        self._look_at(event.device)
        self._tier = event.tier
        self._measure(now, event)
        self._activity = Activity.RUNNING
        self._announce(now)

    def _measure(self, now: float, event: StepsRun) -> None:
        """Take the rate since the last word, or that of the present call where the program has rested."""
        elapsed, calls = now - self._last_moment, self._calls - self._last_calls
        has_rested = self._rate is None or elapsed > 3 * max(1.0, self._period)
        if has_rested or elapsed <= 0:
            self._period = event.seconds
            self._rate = event.micro_batches / event.seconds if event.seconds > 0 else None
        else:
            self._period = elapsed / calls
            self._rate = (self._steps - self._last_steps) / elapsed
        self._last_moment, self._last_calls, self._last_steps = now, self._calls, self._steps

    def _look_at(self, label: str) -> None:
        if label != self._label:
            self._label = label
            self._devices = tuple(_BETWEEN_DEVICES.split(label))
            self._cards = tuple(map(self._hardware, self._devices))

    def _announce(self, now: float) -> None:
        self._next_word = now + _SECONDS_BETWEEN_WORDS
        if self._since is None:
            self._since = now
        try:
            self._file_here().write(self._announcement(self._since, now).as_text())
        except OSError as error:
            if not self._has_complained:
                self._has_complained = True
                log_event(Noted(message=f"The monitor does not see this process: {error}"))

    def _file_here(self) -> RunFile:
        if self._file is None or not self._file.is_of_this_process:
            self._file = RunFile(environment.run_directories())
            weakref.finalize(self, self._file.remove)
        return self._file

    def _announcement(self, since: float, now: float) -> Announcement:
        return Announcement(
            **asdict(self._standing),
            devices=self._devices,
            hardware=self._cards,
            tier=self._tier,
            activity=self._activity,
            since=since,
            moment=now,
            calls=self._calls,
            steps=self._steps,
            updates=self._updates,
            rate=self._rate,
            period=self._period,
        )
