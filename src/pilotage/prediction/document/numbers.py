"""The smallest values of a report: bounded numbers, ranges and places in the user's code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pilotage.prediction.document.reading import AtLeast, require

__all__ = ["Amount", "Count", "Phase", "Range", "Source"]

Count = Annotated[int, AtLeast(0)]
"""A whole number, such as bytes."""

Amount = Annotated[float, AtLeast(0)]
"""A number that is not negative, such as seconds."""

Phase = Literal["forward", "backward", "update"]
"""The part of an update that an operation belongs to; inference has only forward."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """An estimate and the bounds within which the truth is expected."""

    low: Amount
    value: Amount
    high: Amount

    def __post_init__(self) -> None:
        require(
            self.low <= self.value <= self.high,
            f"a range has low {self.low}, value {self.value} and high {self.high}; these must not decrease",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """A line of the user's code."""

    file: str
    line: Count
    text: str = ""
    """The line itself; empty if the file could not be read."""
