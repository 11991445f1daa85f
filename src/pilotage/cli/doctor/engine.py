"""Which backend would run a program, and whether it does."""

from __future__ import annotations

from types import ModuleType

from pilotage.cli.doctor.finding import Finding, Verdict

__all__ = ["examine_engine"]


def examine_engine(torch: ModuleType | None) -> tuple[Finding, ...]:
    """Choose a backend as a program would."""
    if torch is None:
        return (Finding(name="backend", value="none without torch", verdict=Verdict.PROBLEM),)
    return (Finding(name="backend", value="cpu"),)
