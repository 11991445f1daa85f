"""Several stages of one process, each compiled as a program of its own, switch to compiled code together.

They are compiled one after the other, all for the first card: a trial of one stage has to fit beside the training, and
a trial of all stages at once would need the memory of all cards. They switch once all of them have found the fastest
way to run; if one of them cannot be compiled, all stay on their graphs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TypeAlias

import torch

from pilotage.compiler.cache import Entry, NativeCache
from pilotage.compiler.packed_code import PackedCode
from pilotage.compiler.tuning import Tuning
from pilotage.errors import CaptureError, OptionError
from pilotage.events import Event, Noted, Warned
from pilotage.options.choices import Tier
from pilotage.program.program import Program
from pilotage.program.schedule import Schedule
from pilotage.runtime.tiers.ascent import Ascent, Buffers, Sample, ascent_for
from pilotage.runtime.tiers.policy import CompilePolicy
from pilotage.storage.fingerprint import Fingerprint
from pilotage.strategies.strategy import Code


@dataclass(frozen=True, slots=True)
class StageEntries:
    """The compiled code of all stages of this process."""

    of_stages: Mapping[int, Entry]
    """The code by stage, without stages that compute nothing."""

    stages: int

    @property
    def codes(self) -> list[Code | None]:
        """The code of each stage as a function of the device, or None for those that run their graphs."""
        found: list[Code | None] = [None] * self.stages
        for stage, entry in self.of_stages.items():
            (found[stage],) = entry.codes
        return found

    @property
    def digest(self) -> str:
        """A digest of all their files."""
        return hashlib.sha256(" ".join(entry.digest for entry in self.of_stages.values()).encode()).hexdigest()

    @property
    def tuning(self) -> Tuning:
        """What was measured in all stages; the tier is compiled if any of them runs compiled code."""
        tunings = {stage: entry.tuning for stage, entry in self.of_stages.items()}
        is_compiled = any(each.tier is Tier.COMPILED for each in tunings.values())
        notes = [f"stage {stage}: {each.note}" for stage, each in tunings.items() if each.note]
        on_graphs = [f"stage {stage}" for stage, each in tunings.items() if each.tier is not Tier.COMPILED]
        if is_compiled and on_graphs:
            notes.append(f"{', '.join(on_graphs)} on the graph, which is faster there")
        return Tuning(
            tier=Tier.COMPILED if is_compiled else Tier.GRAPH,
            seconds={
                f"stage {stage} {way}": seconds
                for stage, each in tunings.items()
                for way, seconds in each.seconds.items()
            },
            reason="; ".join(f"stage {stage}: {each.reason}" for stage, each in tunings.items() if each.reason),
            note="; ".join(notes),
        )

    def files(self) -> dict[str, bytes]:
        """The contents of all their files; raises if any is missing or changed."""
        return {
            f"{stage}/{name}": data for stage, entry in self.of_stages.items() for name, data in entry.files().items()
        }


class StageAscents:
    """The pending switch of all stages of this process."""

    def __init__(
        self, of_stages: Mapping[int, Ascent], stages: int, policy: CompilePolicy, tell: Callable[[Event], None]
    ) -> None:
        """``of_stages`` has an ascent for each stage that computes something; none of them switches by itself."""
        self.ready: StageEntries | None = None
        """The finished code of all stages, while other instances are not ready to use theirs."""
        self.obstacle = ""
        """Why a stage cannot be compiled; empty if nothing prevents it."""
        self._of_stages, self._stages, self._policy, self._tell = of_stages, stages, policy, tell
        self._worked = 0.0

    @property
    def fingerprint(self) -> Fingerprint:
        """What the code of all stages depends on."""
        return Fingerprint({f"stage {stage}": each.fingerprint.digest for stage, each in self._of_stages.items()})

    @property
    def cache(self) -> NativeCache:
        """Where the code of all stages is kept."""
        return self._first.cache

    @property
    def threads_file(self) -> Path:
        """The file with the best number of threads, beside the code of the first stage."""
        return self._first.threads_file

    @property
    def cores(self) -> int:
        """How many cores this process may use."""
        return self._first.cores

    def first_entry(self, sample: Sample, buffers: Buffers, code: PackedCode | None) -> tuple[StageEntries, str] | None:
        """The code to start with and its origin: the cache, or compilations now if they are required."""
        if code is not None:
            self._tell(Noted(message="The compiled code in the file is for one device, and stages do not use it."))
        if not self._policy.is_required:
            for each in self._of_stages.values():
                each.first_entry(sample, buffers, None)
            found = self._found()
            return None if found is None else (found, "found in the cache")
        origins = set()
        for stage, each in self._of_stages.items():
            with _naming(stage):
                started = each.first_entry(sample, buffers, None)
            assert started is not None
            origins.add(started[1])
        self.ready = self._all_ready()
        assert self.ready is not None
        return self.ready, " and ".join(sorted(origins))

    def take(self, code: PackedCode) -> None:
        """Replace the compiled code of all stages by that of another instance."""
        self.ready = None
        for stage, each in self._of_stages.items():
            files = {PurePosixPath(name): data for name, data in code.files.items()}
            each.take(
                PackedCode(
                    {
                        str(name.relative_to(str(stage))): data
                        for name, data in files.items()
                        if name.parts[0] == str(stage)
                    }
                )
            )
            self.obstacle = self.obstacle or each.obstacle
        self.ready = self._all_ready()

    def is_due(self, seconds: float) -> bool:
        """Note how long a call took; returns whether it is time to start or to check a compiler."""
        self._worked += seconds
        if self.is_over or self.ready is not None or self._worked < self._policy.after_seconds:
            return False
        return self._of_stages[self._next].is_due(seconds)

    def advance(self, sample: Sample, buffers: Buffers) -> StageEntries | None:
        """Start the compiler of a stage, or check whether it is done; returns the code of all once it can be used.

        If all instances have to switch together, it is `ready` instead.
        """
        stage = self._next
        self._of_stages[stage].advance(sample, buffers)
        if self._of_stages[stage].is_over and self._of_stages[stage].ready is None:
            self.obstacle = f"stage {stage}: {self._of_stages[stage].obstacle}"
            self.stop()
            self._tell(Noted(message=f"All stages stay on the graph tier: {self.obstacle}.", can_be_changed=True))
            return None
        return self._found()

    @property
    def is_over(self) -> bool:
        """Whether compiling has ended, with or without a result."""
        return bool(self.obstacle) or all(each.ready is not None for each in self._of_stages.values())

    @property
    def is_compiling(self) -> bool:
        """Whether a compiler is running in the background."""
        return any(each.is_compiling for each in self._of_stages.values())

    def stop(self) -> None:
        """End the compiler, if one is running."""
        for each in self._of_stages.values():
            each.stop()

    def _found(self) -> StageEntries | None:
        """The code of all stages if it can be used now; `ready` if other instances have to agree."""
        found = self._all_ready()
        if self._policy.with_others:
            self.ready = found
            return None
        return found

    def _all_ready(self) -> StageEntries | None:
        entries = {stage: each.ready for stage, each in self._of_stages.items() if each.ready is not None}
        return StageEntries(entries, self._stages) if len(entries) == len(self._of_stages) else None

    @property
    def _first(self) -> Ascent:
        return next(iter(self._of_stages.values()))

    @property
    def _next(self) -> int:
        """The stage whose code is compiled now."""
        return next(stage for stage, each in self._of_stages.items() if each.ready is None)


Rising: TypeAlias = Ascent | StageAscents
"""The pending switch of a program, or of all stages of this process."""

Compiled: TypeAlias = Entry | StageEntries
"""The code of a program, or of all stages of this process."""


def ascents_for(
    programs: Sequence[Program],
    schedule: Schedule,
    device: torch.device,
    policy: CompilePolicy,
    *,
    directory: Path | None,
    tell: Callable[[Event], None],
    about: Mapping[str, str],
    is_called_off: Callable[[], bool],
) -> Rising | None:
    """The ascent of a program or of all its stages here; None if compiling is not possible, and the reason is reported.

    A stage that computes nothing has nothing to compile.
    """
    if len(programs) == 1:
        return ascent_for(
            programs[0],
            schedule,
            device,
            policy,
            directory=directory,
            tell=tell,
            about=about,
            is_called_off=is_called_off,
        )
    found: dict[int, Ascent] = {}
    # Each waits for the others; the delay before compiling is that of all.
    own = policy if policy.is_required else replace(policy, after_seconds=0.0, with_others=True)
    for stage, program in enumerate(programs):
        if not program.computations:
            continue
        with _naming(stage):
            ascent = ascent_for(
                program,
                schedule,
                device,
                own,
                directory=directory,
                tell=partial(_tell_of_stage, tell, stage),
                about={**about, "stage": str(stage)},
                number=stage,
                is_called_off=is_called_off,
            )
        if ascent is None:
            return None
        found[stage] = ascent
    return StageAscents(found, len(programs), policy, tell) if found else None


@contextmanager
def _naming(stage: int) -> Iterator[None]:
    """Say which stage an error is about."""
    try:
        yield
    except (OptionError, CaptureError) as error:
        raise type(error)(f"Stage {stage}: {error}") from error


def _tell_of_stage(tell: Callable[[Event], None], stage: int, event: Event) -> None:
    """Say which stage an event is about."""
    if isinstance(event, (Noted, Warned)):
        event = replace(event, message=f"Stage {stage}: {event.message}")
    tell(event)
