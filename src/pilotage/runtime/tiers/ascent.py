"""From the captured graph to compiled code, while the program runs.

The first step never waits for the slow compiler, unless the tier is pinned to compiled code. The program runs as a
graph while a background process compiles, and the executor switches at the end of a later call. The next start finds
the compiled code in the cache.
"""

from __future__ import annotations

import contextlib
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
from pilotage.compiler.job import CompileJob
from pilotage.compiler.operator_libraries import OperatorLibraries
from pilotage.compiler.packed_code import PackedCode, install
from pilotage.compiler.process import CompilingProcess
from pilotage.compiler.requirements import missing_compiler
from pilotage.compiler.target import compile_target, precision_settings
from pilotage.compiler.tuning import Tuning
from pilotage.errors import CaptureError, OptionError, ProgramFileError
from pilotage.events import CompilationProgress, Event, Noted, Warned
from pilotage.interrupts import INTERRUPTS
from pilotage.options import environment
from pilotage.options.choices import Tier
from pilotage.program.program import Action, Program
from pilotage.program.schedule import Schedule
from pilotage.runtime.tiers.policy import CompilePolicy
from pilotage.storage.fingerprint import Fingerprint, fingerprint

_SECONDS_BETWEEN_LOOKS = 0.1
_SECONDS_BETWEEN_QUESTIONS = 0.5
"""How often a process that waits for its compiler asks whether another one has failed."""
_MOST_HALVES = 4
"""How often forward and backward of a stage run in a trial: each run keeps what forward keeps for backward."""

Sample = Callable[[int], Mapping[Action, Sequence[Tensor]]]
"""Returns what each action of a program takes after its state, to compile for these shapes and layouts.

It is given the program's number among those that are compiled: 0, or the stage in this process.
"""

Buffers = Callable[[], Mapping[str, Tensor]]
"""Returns the buffers of the program, by name."""


class CompilingCalledOffError(Exception):
    """Another process, which has to compile before the first call too, has failed."""


@dataclass(kw_only=True)
class Ascent:
    """The pending switch of one program to compiled code.

    Large because it follows a program from the first look into the cache to the last switch.
    """

    program: Program
    fingerprint: Fingerprint
    cache: NativeCache
    device: torch.device
    schedule: Schedule
    policy: CompilePolicy
    tell: Callable[[Event], None]
    about: Mapping[str, str] = field(default_factory=dict)
    """A description of the program, shown by `pilotage cache`."""

    number: int = 0
    """Its place among the programs that are compiled."""

    is_called_off: Callable[[], bool] = lambda: False
    """Whether another process has failed to compile its program before the first call."""

    ready: Entry | None = field(default=None, init=False)
    """The finished compiled code, while other instances are not ready to use theirs."""

    obstacle: str = field(default="", init=False)
    """Why the program cannot be compiled; empty if nothing prevents it."""

    _in_use: str = field(default="", init=False)
    """The digest of the code that the program runs while the compiler looks for faster code."""

    _worked: float = field(default=0.0, init=False)
    _process: CompilingProcess | None = field(default=None, init=False)
    _next_look: float = field(default=0.0, init=False)
    _is_over: bool = field(default=False, init=False)

    def first_entry(self, sample: Sample, buffers: Buffers, code: PackedCode | None) -> tuple[Entry, str] | None:
        """The code to start with and its origin: the cache, or a compilation now if that is required.

        ``code`` comes from a trusted file, and is put into the cache first.
        """
        if code is not None:
            self._install(code)
        entry = self._find()
        if self.policy.is_required and (entry is None or entry.tuning.tier is not Tier.COMPILED):
            self.tell(CompilationProgress(fraction=0.85, doing="compiling"))
            self.ready = self._compile_now(sample, buffers)
            return self.ready, "compiled"
        if self.policy.with_others or self.policy.is_required:
            self.ready = entry
        return None if entry is None or self.policy.with_others else (entry, "found in the cache")

    def take(self, code: PackedCode) -> None:
        """Replace the compiled code by that of another instance."""
        self.ready = None
        self.cache.forget(self.fingerprint)
        self._install(code)
        try:
            self.ready = self._loaded()
        except ProgramFileError as error:
            self.obstacle = str(error)

    def _compile_now(self, sample: Sample, buffers: Buffers) -> Entry:
        self.cache.forget(self.fingerprint)
        self._begin(sample, buffers)
        entry = self._wait()
        if entry is None or entry.tuning.tier is not Tier.COMPILED:
            reason = self.obstacle or "see the warning above" if entry is None else entry.tuning.reason
            raise OptionError(f"The tier is 'compiled', but the program could not be compiled: {reason}. Use 'graph'.")
        return entry

    def _find(self) -> Entry | None:
        """The cached code of the program; if it has none, reports why."""
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
        """The cached code, ready to be called; raises ProgramFileError if it cannot be used."""
        entry = self.cache.find(self.fingerprint)
        if entry is not None and entry.tuning.tier is Tier.COMPILED:
            try:
                entry.code(self.device)
            except (ImportError, OSError, RuntimeError, ValueError, KeyError) as error:
                self.cache.forget(self.fingerprint)
                raise ProgramFileError(f"The compiled code in {entry.folder} cannot be loaded: {error}.") from error
        return entry

    def _install(self, code: PackedCode) -> None:
        """Put compiled code that came with a trusted program into the cache, after checking it."""
        try:
            is_taken = install(code, self.cache, self.fingerprint)
        except OSError as error:
            self.tell(
                Warned(
                    message=f"The compiled code in the file is not used: {self.cache.root} is not writable ({error})."
                )
            )
            return
        if not is_taken:
            self.tell(
                Noted(message="The compiled code in the file is for another machine or version, and is not used.")
            )

    def is_due(self, seconds: float) -> bool:
        """Note how long a call took; returns whether it is time to start or to check the compiler."""
        if self._is_over or self.ready is not None:
            return False
        self._worked += seconds
        return (
            self._worked >= self.policy.after_seconds if self._process is None else time.monotonic() >= self._next_look
        )

    def advance(self, sample: Sample, buffers: Buffers) -> Entry | None:
        """Start the compiler, or check whether it is done; returns the compiled code once it can be used.

        If all instances have to switch together, it is `ready` instead.
        """
        if self._process is None:
            self._begin(sample, buffers)
            return None
        self._next_look = time.monotonic() + _SECONDS_BETWEEN_LOOKS
        entry = self._first_code() if self._process.is_running else self._outcome()
        if self.policy.with_others:
            self.ready = entry
            return None
        # The compiler keeps its first code if it finds nothing faster.
        is_new = entry is not None and entry.digest != self._in_use
        self._in_use = entry.digest if entry is not None else self._in_use
        return entry if is_new else None

    def _first_code(self) -> Entry | None:
        """The first code of a compiler that still looks for faster code; None while it has none."""
        if self._in_use or self.policy.with_others or not self.cache.folder(self.fingerprint).exists():
            return None
        with contextlib.suppress(ProgramFileError):
            return self._loaded()
        return None

    def _has_first_code(self) -> bool:
        """Whether a compiler that has failed had stored code before."""
        with contextlib.suppress(ProgramFileError):
            entry = self.cache.find(self.fingerprint)
            return entry is not None and entry.tuning.tier is Tier.COMPILED
        return False

    @property
    def threads_file(self) -> Path:
        """The file with the best number of threads, beside the compiled code."""
        return self.cache.store.threads_file(self.fingerprint.digest)

    @cached_property
    def cores(self) -> int:
        """How many cores this process may use."""
        return len(os.sched_getaffinity(0))

    @property
    def is_over(self) -> bool:
        """Whether compiling has ended, with or without a result."""
        return self._is_over

    @property
    def is_compiling(self) -> bool:
        """Whether a compiler is running in the background."""
        return self._process is not None and self._process.is_running

    def _begin(self, sample: Sample, buffers: Buffers) -> None:
        """Start the compiler, unless there is nothing to compile for."""
        try:
            inputs = sample(self.number)
        except Exception as error:
            # A stage may refuse what is made up in place of other stages' messages.
            self._is_over = True
            self._refuse("The program stays on the graph tier", f"it cannot run on sample inputs ({error})")
            return
        if inputs:
            self._start(inputs, buffers())

    def _start(self, inputs: Mapping[Action, Sequence[Tensor]], buffers: Mapping[str, Tensor]) -> None:
        """Start the compiler; if that is not possible, the program stays on the graph tier."""
        try:
            if not os.access(self.cache.root, os.W_OK):
                raise PermissionError(errno.EACCES, "Compiled code cannot be written", str(self.cache.root))
            self._process = CompilingProcess(self._job(inputs, buffers))
        except OSError as error:
            self._is_over = True
            self._refuse("The program stays on the graph tier", f"no compiler could be started ({error})")

    def _job(self, inputs: Mapping[Action, Sequence[Tensor]], buffers: Mapping[str, Tensor]) -> CompileJob:
        steps = Counter(step.action for step in self.schedule.steps if step.iteration == 0 and step.replica == 0)
        # Forward and backward of a stage are not actions of its schedule; a few times show what they weigh.
        halves = min(_MOST_HALVES, max(count for action, count in steps.items() if action is not Action.UPDATE))
        return CompileJob(
            program=self.program,
            fingerprint=self.fingerprint,
            cache=self.cache.root,
            device=self.device,
            runs={action: steps[action] or halves for action in self.program.computations},
            inputs={action: [tensor.detach() for tensor in given] for action, given in inputs.items()},
            buffers={name: buffers[name].detach() for name in self.program.layout.buffers},
            threads=torch.get_num_threads(),
            compiler_threads=max(1, min(self.cores - 1, 8)),
            precision=precision_settings(),
            must_compile=self.policy.is_required,
            about=self.about,
        )

    def _wait(self) -> Entry | None:
        """Wait for the compiler."""
        if self._process is None:
            return None
        try:
            with INTERRUPTS.open():
                while self._process.is_running:
                    if self.is_called_off():
                        raise CompilingCalledOffError
                    self._process.wait(_SECONDS_BETWEEN_QUESTIONS)
        except BaseException:
            self.stop()
            raise
        return self._outcome()

    def stop(self) -> None:
        """End the compiler, if it is running."""
        self._is_over = True
        if self._process is not None:
            self._process.stop()
            self._process = None

    def _outcome(self) -> Entry | None:
        assert self._process is not None
        problem = self._process.problem()
        self.stop()
        if problem is not None and not self._in_use and not self._has_first_code():
            self._refuse("Compiling failed, the program stays on the graph tier", problem)
            return None
        if problem is not None:
            self.tell(Noted(message=f"The search for faster code has ended: {problem}", can_be_changed=True))
        if problem is not None and self._in_use:
            return None
        try:
            entry = self._loaded()
        except ProgramFileError as error:
            self._refuse("The program stays on the graph tier", str(error))
            return None
        if entry is None:
            self._refuse("The program stays on the graph tier", f"its code has disappeared from {self.cache.root}")
        else:
            self._report(entry.tuning)
        return entry

    def _refuse(self, what: str, why: str) -> None:
        """Record and report why the program has no compiled code."""
        self.obstacle = why
        self.tell(Warned(message=f"{what}: {why.removesuffix('.')}."))

    def _report(self, tuning: Tuning) -> None:
        """Report what could not be compiled, and which rewrites the code was compiled without."""
        if tuning.failure:
            self.tell(Warned(message=f"The program stays on the graph tier: {tuning.failure}."))
        elif tuning.reason:
            self.tell(Noted(message=f"Not used: {tuning.reason}.", can_be_changed=True))
        for line in tuning.dropped:
            self.tell(Noted(message=f"{line}.", can_be_changed=True))
        self.tell(Noted(message=f"Compiling took {tuning.duration}."))


def ascent_for(
    program: Program,
    schedule: Schedule,
    device: torch.device,
    policy: CompilePolicy,
    *,
    directory: Path | None,
    tell: Callable[[Event], None],
    about: Mapping[str, str] | None = None,
    number: int = 0,
    is_called_off: Callable[[], bool] = lambda: False,
) -> Ascent | None:
    """The ascent of a program; None if compiling is not possible, and the reason is reported."""
    if (problem := missing_compiler(device)) is not None:
        if policy.is_required:
            raise OptionError(f"The tier is 'compiled', but {problem}. Install one, or choose the tier 'graph'.")
        tell(Noted(message=f"The program stays on the graph tier: {problem}.", can_be_changed=True))
        return None
    root = directory or environment.executable_cache()
    if root is None:
        if policy.is_required:
            raise OptionError(
                "The tier is 'compiled', but PILOTAGE_CACHE_DIR is off. Compiled code needs a directory: name one."
            )
        return None
    try:
        # Raises if an operator of the program works in this process only.
        OperatorLibraries.of(program)
        return Ascent(
            program=program,
            fingerprint=fingerprint(program, compile_target(device)),
            cache=NativeCache(root),
            device=device,
            schedule=schedule,
            policy=policy,
            tell=tell,
            about=about or {},
            number=number,
            is_called_off=is_called_off,
        )
    except (OptionError, CaptureError) as error:
        if policy.is_required:
            raise
        tell(Warned(message=f"The program stays on the graph tier: {error}"))
        return None
