"""When a program is compared with eager PyTorch, and what a difference means."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pilotage.errors import OptionError
from pilotage.options import environment
from pilotage.options.suggestions import did_you_mean

FIRST, OFF = "first", "off"


class OnMismatch(Enum):
    """What happens if a program and eager PyTorch differ by more than rounding."""

    RAISE = "raise"
    """Raise before the result is returned; the weights stay as they were."""
    WARN = "warn"
    """Warn and continue."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """When to compare a program with eager PyTorch."""

    period: int | None = None
    """Compare every this many calls; None compares only the first call of each program."""

    is_off: bool = False
    """Never compare."""

    is_explicit: bool = False
    """The user asked for the comparison, so it runs however long it takes."""

    on_mismatch: OnMismatch = OnMismatch.RAISE

    @classmethod
    def of(cls, check: str | int | None = None, on_mismatch: str | OnMismatch = OnMismatch.RAISE) -> Check:
        """The check that an option asks for: ``first``, ``off`` or a number; None takes PILOTAGE_CHECK, then first."""
        option, value = "check", check
        if value is None and (text := environment.check()) is not None:
            option, value = environment.CHECK.name, int(text) if text.isdecimal() else text.lower()
        try:
            reaction = OnMismatch(on_mismatch)
        except ValueError:
            hint = did_you_mean(str(on_mismatch), (each.value for each in OnMismatch))
            raise OptionError(f"on_mismatch is {on_mismatch!r}.{hint} Choose one of: 'raise', 'warn'.") from None
        if value is None:
            return cls(on_mismatch=reaction)
        if value == OFF:
            return cls(is_off=True, on_mismatch=reaction)
        if value == FIRST:
            return cls(is_explicit=True, on_mismatch=reaction)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return cls(period=value, is_explicit=True, on_mismatch=reaction)
        hint = did_you_mean(value, (FIRST, OFF)) if isinstance(value, str) else ""
        raise OptionError(
            f"{option} is {value!r}.{hint} Choose 'first' to compare the first call with "
            "eager PyTorch, 'off', or a whole number n to compare every n calls."
        )
