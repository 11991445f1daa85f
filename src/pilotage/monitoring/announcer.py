"""Announces a program: from the events of its executor, about once a second, without a thread."""

from __future__ import annotations

import re
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

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
        self._devices = _Devices()
        self._tier = ""
        self._activity = Activity.STARTING
        self._progress = _Progress()
        self._since: float | None = None
        self._next_write = 0.0

    def note(self, event: Event) -> None:
        """Take an event into account; at most one per second costs more than counting."""
        if self._is_off:
            return
        match event:
            case StepsRun():
                progress = self._progress
                progress.calls += 1
                progress.steps += event.micro_batches
                progress.updates += event.updates
                now = self._clock()
                if now >= self._next_write:
                    self._announce_steps(event, now)
            case BackendChosen():
                self._enter(event.device, event.tier, Activity.COMPILING)
            case CompilationProgress(fraction=1.0):
                self._enter(self._devices.label, self._tier, Activity.STARTING)
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
        self._activity = Activity.STARTING
        self._progress.restart()
        self._next_write = 0.0

    def _enter(self, label: str, tier: str, activity: Activity) -> None:
        self._set_devices(label)
        self._tier, self._activity = tier, activity
        self._announce(self._clock())
        self._next_write = 0.0

    def _announce_steps(self, event: StepsRun, now: float) -> None:
        self._set_devices(event.device)
        self._tier = event.tier
        self._progress.measure(now, event)
        self._activity = Activity.RUNNING
        self._announce(now)

    def _set_devices(self, label: str) -> None:
        if label != self._devices.label:
            names = tuple(_DEVICE_SEPARATOR.split(label))
            self._devices = _Devices(label, names, tuple(map(self._hardware, names)))

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
            devices=self._devices.names,
            hardware=self._devices.cards,
            tier=self._tier,
            activity=self._activity,
            since=since,
            moment=now,
            calls=self._progress.calls,
            steps=self._progress.steps,
            updates=self._progress.updates,
            rate=self._progress.rate,
            period=self._progress.period,
        )


@dataclass(frozen=True, slots=True)
class _Devices:
    """The devices of a program: their common label, their names and their UUIDs."""

    label: str = ""
    names: tuple[str, ...] = ()
    cards: tuple[str, ...] = ()


class _Progress:
    """Counts calls, and measures the rate between announcements."""

    def __init__(self) -> None:
        self.calls = self.steps = self.updates = 0
        self.restart()

    def restart(self) -> None:
        """Forget the rate, but not the counts."""
        self.rate: float | None = None
        self.period = 0.0
        self._last_moment, self._last_calls, self._last_steps = 0.0, self.calls, self.steps

    def measure(self, now: float, event: StepsRun) -> None:
        """Measure the rate since the last announcement, or that of this call if the program was idle before."""
        elapsed, calls = now - self._last_moment, self.calls - self._last_calls
        was_idle = self.rate is None or elapsed > 3 * max(1.0, self.period)
        if was_idle or elapsed <= 0:
            self.period = event.seconds
            self.rate = event.micro_batches / event.seconds if event.seconds > 0 else None
        else:
            self.period = elapsed / calls
            self.rate = (self.steps - self._last_steps) / elapsed
        self._last_moment, self._last_calls, self._last_steps = now, self.calls, self.steps
