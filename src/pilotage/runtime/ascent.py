"""From the captured graph to compiled code, while the program runs.

The first step never waits for the slow compiler. The program runs as a graph, a process beside it compiles, and at the
end of some later call the executor changes over. What was compiled once is found again at the next start.
"""

from __future__ import annotations

import errno
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from pilotage.compiler.cache import Entry, NativeCache
from pilotage.compiler.job import Job
from pilotage.compiler.kernel_settings import precision_settings
from pilotage.compiler.process import CompilingProcess
from pilotage.compiler.requirements import missing_compiler
from pilotage.compiler.surroundings import surroundings
from pilotage.compiler.transport import PackedCode, install
from pilotage.errors import CaptureError, OptionError, ProgramFileError
from pilotage.events import Event, Noted, Warned
from pilotage.interrupts import INTERRUPTS
from pilotage.options import environment
from pilotage.options.choices import Tier
from pilotage.passes.late_checks import with_late_checks
from pilotage.program.program import Program
from pilotage.program.schedule import Schedule
from pilotage.storage.fingerprint import Fingerprint, fingerprint

_SECONDS_BETWEEN_LOOKS = 0.1

Sample = Callable[[], Sequence[Tensor]]
"""Gives the inputs of one micro-batch."""


@dataclass(kw_only=True)
class Ascent:
    """The way of one program to its compiled code."""

    program: Program
    fingerprint: Fingerprint
    cache: NativeCache
    device: torch.device
    schedule: Schedule
    patience: float
    """Seconds of work on the graph before compiling begins."""

    tell: Callable[[Event], None]
    must_compile: bool = False
    about: Mapping[str, str] = field(default_factory=dict)
    """What the program is, for people who look at the cache."""

    _worked: float = field(default=0.0, init=False)
    _process: CompilingProcess | None = field(default=None, init=False)
    _next_look: float = field(default=0.0, init=False)
    _is_over: bool = field(default=False, init=False)

    def find(self) -> Entry | None:
        """What was compiled before; a miss is told with its reason."""
        try:
            entry = self._loaded()
        except ProgramFileError as error:
            self.tell(Warned(message=f"{error} It is compiled again."))
            return None
        if entry is None:
            why = self.cache.why_missing(self.fingerprint)
            self.tell(Noted(message=f"No compiled code for this program in {self.cache.root}: {why}."))
        return entry

    def _loaded(self) -> Entry | None:
        """What is in the cache, ready to be called; raises ProgramFileError where it cannot be used."""
        entry = self.cache.find(self.fingerprint)
        if entry is not None and entry.tuning.tier is Tier.COMPILED:
            try:
                entry.code(self.device, self.program.computations)
            except (ImportError, OSError, RuntimeError, ValueError, KeyError) as error:
                self.cache.forget(self.fingerprint)
                raise ProgramFileError(f"The compiled code in {entry.folder} cannot be loaded: {error}.") from error
        return entry

    def take_in(self, code: PackedCode) -> None:
        """Take compiled code that came with the program; it is checked, and it is trusted."""
        try:
            is_taken = install(code, self.cache, self.fingerprint)
        except OSError as error:
            self.tell(
                Warned(message=f"The compiled code in the file is not used: {self.cache.root} takes nothing ({error}).")
            )
            return
        if not is_taken:
            self.tell(
                Noted(message="The compiled code in the file is for another machine or version, and is not used.")
            )

    def is_due(self, seconds: float) -> bool:
        """Told how long a call took; whether it is time to start the compiler, or to look after it."""
        if self._is_over:
            return False
        self._worked += seconds
        return self._worked >= self.patience if self._process is None else time.monotonic() >= self._next_look

    def go_on(self, sample: Sample, buffers: Sample) -> Entry | None:
        """Start the compiler, or look after it; returns the compiled code once it is there."""
        if self._process is None:
            self.start(sample(), buffers())
            return None
        self._next_look = time.monotonic() + _SECONDS_BETWEEN_LOOKS
        return None if self._process.is_running else self._outcome()

    @cached_property
    def cores(self) -> int:
        """How many cores this process may use."""
        return len(os.sched_getaffinity(0))

    @property
    def is_compiling(self) -> bool:
        """Whether a compiler works beside the program."""
        return self._process is not None and self._process.is_running

    def start(self, sample: Sequence[Tensor], buffers: Sequence[Tensor]) -> None:
        """Start the compiler; where that is not possible, the program stays as it is."""
        try:
            if not os.access(self.cache.root, os.W_OK):
                raise PermissionError(errno.EACCES, "Compiled code cannot be written", str(self.cache.root))
            self._process = CompilingProcess(self._job(sample, buffers))
        except OSError as error:
            self._is_over = True
            self.tell(Warned(message=f"The program stays on the graph tier: no compiler could be started ({error})."))

    def _job(self, sample: Sequence[Tensor], buffers: Sequence[Tensor]) -> Job:
        return Job(
            program=self.program,
            fingerprint=self.fingerprint,
            cache=self.cache.root,
            device=self.device,
            runs=Counter(step.action for step in self.schedule.steps if step.iteration == 0 and step.replica == 0),
            inputs=[tensor.detach() for tensor in sample],
            buffers=dict(zip(self.program.layout.buffers, buffers, strict=True)),
            threads=torch.get_num_threads(),
            compiler_threads=max(1, min(self.cores - 1, 8)),
            precision=precision_settings(),
            must_compile=self.must_compile,
            about=self.about,
        )

    def finish(self) -> Entry | None:
        """Wait for the compiler."""
        if self._process is None:
            return None
        try:
            with INTERRUPTS.open():
                self._process.wait()
        except BaseException:
            self.stop()
            raise
        return self._outcome()

    def stop(self) -> None:
        """End the compiler, if it is at work."""
        self._is_over = True
        if self._process is not None:
            self._process.stop()
            self._process = None

    def _outcome(self) -> Entry | None:
        assert self._process is not None
        problem = self._process.problem()
        self.stop()
        if problem is not None:
            self.tell(Warned(message=f"Compiling failed, the program stays on the graph tier: {problem}"))
            return None
        try:
            entry = self._loaded()
        except ProgramFileError as error:
            self.tell(Warned(message=f"The program stays on the graph tier: {error}"))
            return None
        if entry is None:
            self.tell(Warned(message=f"The program stays on the graph tier: its code is gone from {self.cache.root}."))
        return entry


def ascent_for(
    program: Program,
    schedule: Schedule,
    device: torch.device,
    *,
    patience: float,
    directory: Path | None,
    must_compile: bool,
    tell: Callable[[Event], None],
    about: Mapping[str, str] | None = None,
) -> Ascent | None:
    """The way up for a program, or None where there is none; the reason is told."""
    if (problem := missing_compiler(device)) is not None:
        if must_compile:
            raise OptionError(f"The tier is 'compiled', but {problem}. Install one, or choose the tier 'graph'.")
        tell(Noted(message=f"The program stays on the graph tier: {problem}.", can_be_changed=True))
        return None
    root = directory or environment.executable_cache()
    if root is None:
        if must_compile:
            raise OptionError(
                "The tier is 'compiled', but PILOTAGE_CACHE_DIR is off: compiled code needs a place. Name one."
            )
        return None
    try:
        return Ascent(
            program=with_late_checks(program),
            fingerprint=fingerprint(program, surroundings(device)),
            cache=NativeCache(root),
            device=device,
            schedule=schedule,
            patience=patience,
            tell=tell,
            must_compile=must_compile,
            about=about or {},
        )
    except (OptionError, CaptureError) as error:
        if must_compile:
            raise
        tell(Warned(message=f"The program stays on the graph tier: {error}"))
        return None
