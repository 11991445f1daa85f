"""Announces a program: from the events of its executor, about once a second, without a thread."""

from __future__ import annotations

import re
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict

from pilotage.events import BackendChosen, CompilationProgress, Event, Noted, StepsRun, TierChanged
from pilotage.logs import log_event
from pilotage.monitoring.announcement import Activity, Announcement, ProgramDescription
from pilotage.monitoring.run_file import RunFile
from pilotage.options import environment

_SECONDS_BETWEEN_WRITES = 1.0
_DEVICE_SEPARATOR = re.compile(r", (?![^(]*\))")


class Announcer:
    """Listens to one executor and announces what it does; failing to do so never stops the program."""

    def __init__(
        self,
        description: ProgramDescription,
        hardware: Callable[[str], str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._description = description
        self._hardware = hardware
        self._clock = clock
        self._file: RunFile | None = None
        self._is_off = not environment.run_directories()
        self._has_reported = False
        self._devices: tuple[str, ...] = ()
        self._cards: tuple[str, ...] = ()
        self._label = self._tier = ""
        self._calls = self._steps = self._updates = 0
        self._since: float | None = None
        self._reset()

    def note(self, event: Event) -> None:
        """Take an event into account; at most one per second costs more than counting."""
        if self._is_off:
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
                self._next_write = 0.0

    @contextmanager
    def entering(self) -> Iterator[None]:
        """Withdraw the announcement if compilation fails inside the block."""
        try:
            yield
        except BaseException:
            self.leave()
            raise

    def leave(self) -> None:
        """Withdraw the announcement after the program left its device; the next step announces it again."""
        if self._file is not None:
            self._file.remove()
        self._reset()

    def _reset(self) -> None:
        self._activity = Activity.STARTING
        self._rate: float | None = None
        self._period = 0.0
        self._next_write = 0.0
        self._last_moment, self._last_calls, self._last_steps = 0.0, self._calls, self._steps

    def _enter(self, label: str, tier: str, activity: Activity) -> None:
        self._set_devices(label)
        self._tier, self._activity = tier, activity
        self._announce(self._clock())
        self._next_write = 0.0

    def _count(self, event: StepsRun) -> None:
        self._calls += 1
        self._steps += event.micro_batches
        self._updates += event.updates
        now = self._clock()
        if now < self._next_write:
            return
        self._set_devices(event.device)
        self._tier = event.tier
        self._measure(now, event)
        self._activity = Activity.RUNNING
        self._announce(now)

    def _measure(self, now: float, event: StepsRun) -> None:
        """Measure the rate since the last announcement, or that of this call if the program was idle before."""
        elapsed, calls = now - self._last_moment, self._calls - self._last_calls
        was_idle = self._rate is None or elapsed > 3 * max(1.0, self._period)
        if was_idle or elapsed <= 0:
            self._period = event.seconds
            self._rate = event.micro_batches / event.seconds if event.seconds > 0 else None
        else:
            self._period = elapsed / calls
            self._rate = (self._steps - self._last_steps) / elapsed
        self._last_moment, self._last_calls, self._last_steps = now, self._calls, self._steps

    def _set_devices(self, label: str) -> None:
        if label != self._label:
            self._label = label
            self._devices = tuple(_DEVICE_SEPARATOR.split(label))
            self._cards = tuple(map(self._hardware, self._devices))

    def _announce(self, now: float) -> None:
        self._next_write = now + _SECONDS_BETWEEN_WRITES
        if self._since is None:
            self._since = now
        try:
            self._file_of_this_process().write(self._announcement(self._since, now).as_text())
        except OSError as error:
            if not self._has_reported:
                self._has_reported = True
                log_event(Noted(message=f"`pilotage monitor` cannot show this process: {error}"))

    def _file_of_this_process(self) -> RunFile:
        if self._file is None or not self._file.is_of_this_process:
            self._file = RunFile(environment.run_directories())
            weakref.finalize(self, self._file.remove)
        return self._file

    def _announcement(self, since: float, now: float) -> Announcement:
        return Announcement(
            **asdict(self._description),
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
