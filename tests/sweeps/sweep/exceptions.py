"""Entries or samples that are known not to be equal, and why."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sweep.comparing import Outcome, Verdict

FILE = Path(__file__).parent.parent / "exceptions.json"

CLASSES = {
    "no processor": (Outcome.NOT_IN_EAGER,),
    "open shape": (Outcome.REFUSED, Outcome.STOPPED),
    "python value": (Outcome.REFUSED,),
    "sparse": (Outcome.REFUSED, Outcome.NOT_IN_EAGER),
    "storage": (Outcome.NOT_IN_EAGER,),
}
"""Kinds of exceptions, and their possible outcomes."""

OUT_OF_SCOPE = ("no processor", "open shape", "python value")
"""Kinds that are not a static CPU computation in eager PyTorch either."""


@dataclass(frozen=True)
class Known:
    """One known exception."""

    entry: str
    samples: str
    """The affected samples: all or some."""

    kind: str
    reason: str

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """The possible outcomes of such a sample."""
        return CLASSES[self.kind]


@dataclass(frozen=True)
class Exceptions:
    """All known exceptions."""

    known: tuple[Known, ...]

    @classmethod
    def read(cls, file: Path = FILE) -> Exceptions:
        """The list that is kept with the tests."""
        return cls(tuple(Known(**entry) for entry in json.loads(file.read_text(encoding="utf-8"))))

    def of(self, entry: str) -> Known | None:
        """The exception of an entry, if it has one."""
        return next((known for known in self.known if known.entry == entry), None)

    def in_scope(self, entry: str) -> bool:
        """Whether at least some samples of an entry have static shapes and run on a CPU."""
        known = self.of(entry)
        return known is None or known.samples == "some" or known.kind not in OUT_OF_SCOPE

    def excuses(self, verdict: Verdict) -> bool:
        """Whether a sample that did not pass is out of scope."""
        known = self.of(verdict.case.entry)
        return verdict.case.is_half if known is None else known.kind in OUT_OF_SCOPE

    def is_needed(self, entry: str, verdicts: Sequence[Verdict]) -> bool:
        """Whether the outcomes match the exception."""
        known = self.of(entry)
        assert known is not None
        met = [verdict.outcome in known.outcomes for verdict in verdicts]
        return all(met) if known.samples == "all" else any(met) and not all(met)
