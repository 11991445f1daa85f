"""Which backend would run a program, and why."""

from __future__ import annotations

from types import ModuleType

from pilotage.cli.doctor.finding import Finding, Verdict
from pilotage.errors import PilotageError

__all__ = ["examine_engine"]


def examine_engine(torch: ModuleType | None) -> tuple[Finding, ...]:
    """Choose a backend as a program without options of its own would."""
    if torch is None:
        return (Finding(name="backend", value="none without torch", verdict=Verdict.PROBLEM, facts={"name": None}),)
    try:
        from pilotage.backends import registry

        choice = registry.choose()
    except PilotageError as error:
        return (_no_backend(str(error), "Mend or unset the environment variable, or choose another backend."),)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        return (_no_backend(reason, "The engine does not fit this torch. Install one of the range above."),)
    facts = {"name": choice.backend.name, "tier": choice.tier.value, "reason": choice.reason}
    value = f"{choice.backend.name}, tier {choice.tier.value}: {choice.reason}"
    return (Finding(name="backend", value=value, facts=facts),)


def _no_backend(reason: str, remedy: str) -> Finding:
    return Finding(name="backend", value=reason, verdict=Verdict.PROBLEM, remedy=remedy, facts={"name": None})
