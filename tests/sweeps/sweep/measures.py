"""The measures for every entry, and their results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

import torch

from sweep.cases import Case
from sweep.comparing import Outcome, Verdict, compare
from sweep.entries import Entry, no_seed_setter
from sweep.exceptions import Exceptions

PASSED = (Outcome.EQUAL, Outcome.CLOSE, Outcome.NOTHING)


class Measure(Enum):
    """What is compared with eager PyTorch."""

    INFERENCE = "inference"
    """All samples in float32."""
    HALF = "half"
    """Two samples in float16."""
    GRADIENTS = "gradients"
    """Up to sixteen samples in float32, spread over all of them."""

    def cases(self, entry: Entry) -> list[Case]:
        """The samples of an entry for this measure."""
        match self:
            case Measure.INFERENCE:
                return entry.cases()
            case Measure.HALF:
                return entry.cases(torch.float16, limit=2)
            case Measure.GRADIENTS:
                return _spread(entry.cases(gradients=True), 16)

    def sample(self, entry: Entry) -> list[Case]:
        """One sample of an entry, not the simplest one."""
        dtype = torch.float16 if self is Measure.HALF else torch.float32
        return entry.cases(dtype, gradients=self is Measure.GRADIENTS, limit=3)[-1:]


@dataclass
class Tally:
    """The verdicts on some entries."""

    verdicts: dict[str, list[Verdict]] = field(default_factory=dict)
    """Verdicts by entry, including entries without samples."""

    def add(self, other: Tally) -> None:
        """Add the verdicts of another tally."""
        self.verdicts.update(other.verdicts)

    def problems(self, exceptions: Exceptions, *, complete: bool, other_torch: bool = False) -> list[str]:
        """What is neither equal nor a known exception, and, of a complete sweep, which exceptions say something else.

        Other versions of torch have fewer kernels for processors, and other exceptions.
        """
        found = []
        for entry, verdicts in self.verdicts.items():
            wrong = [verdict for verdict in verdicts if not _is_fine(verdict, exceptions)]
            found += [str(each) for each in wrong if not (other_torch and each.outcome is Outcome.NOT_IN_EAGER)]
            if complete and not other_torch and exceptions.of(entry) and not exceptions.is_needed(entry, verdicts):
                found.append(f"{entry}: its exception does not say what happens: {_counts(verdicts)}")
        return found

    def numbers(self, exceptions: Exceptions) -> dict[str, int]:
        """Entries and samples, counted."""
        present = {entry: verdicts for entry, verdicts in self.verdicts.items() if verdicts}
        static = {
            entry: verdicts
            for entry, verdicts in present.items()
            if exceptions.in_scope(entry) and (exceptions.of(entry) or _runs_in_eager(verdicts))
        }
        outcomes = Counter(verdict.outcome for verdicts in present.values() for verdict in verdicts)
        return {
            "entries": len(self.verdicts),
            "entries in scope": len(static),
            "entries equal": sum(_passes(verdicts, exceptions) for verdicts in static.values()),
            "samples": sum(outcomes.values()),
            **{f"samples {outcome.value}": outcomes[outcome] for outcome in Outcome},
        }

    def close(self) -> list[str]:
        """The entries that are equal except for rounding."""
        return [entry for entry, verdicts in self.verdicts.items() if Outcome.CLOSE in (v.outcome for v in verdicts)]


def sweep(entries: Iterable[Entry], measure: Measure, exceptions: Exceptions, *, all_samples: bool) -> Tally:
    """Compare samples of entries with eager PyTorch."""
    tally, together, alone = Tally(), [], []
    with no_seed_setter():
        for entry in entries:
            tally.verdicts[entry.name] = []
            cases = measure.cases(entry) if all_samples else measure.sample(entry)
            (alone if exceptions.of(entry.name) else together).extend(cases)
        gradients = measure is Measure.GRADIENTS
        for verdict in (*compare(together, gradients=gradients), *compare(alone, gradients=gradients, together=1)):
            tally.verdicts[verdict.case.entry].append(verdict)
    return tally


def _spread(cases: Sequence[Case], count: int) -> list[Case]:
    step = max(1, -(-len(cases) // count))
    return list(cases[::step])


def _runs_in_eager(verdicts: Sequence[Verdict]) -> bool:
    """Whether a sample was compared: many entries have no kernel for half precision on a CPU."""
    return any(verdict.outcome is not Outcome.NOT_IN_EAGER for verdict in verdicts)


def _is_fine(verdict: Verdict, exceptions: Exceptions) -> bool:
    if verdict.outcome in PASSED:
        return True
    known = exceptions.of(verdict.case.entry)
    if verdict.outcome is Outcome.NOT_IN_EAGER and verdict.case.is_half:
        return True
    return known is not None and verdict.outcome in known.outcomes


def _passes(verdicts: Sequence[Verdict], exceptions: Exceptions) -> bool:
    return all(v.outcome in PASSED or (_is_fine(v, exceptions) and exceptions.excuses(v)) for v in verdicts)


def _counts(verdicts: Sequence[Verdict]) -> str:
    return ", ".join(f"{count} {outcome.value}" for outcome, count in Counter(v.outcome for v in verdicts).items())
