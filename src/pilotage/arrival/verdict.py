"""Whether a program agrees with eager PyTorch, within what rounding explains."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pilotage.arrival.comparison import Quantity, worst
from pilotage.arrival.reference import Outcome

_FACTOR = 16.0
"""Differences up to this many times the effect of other rounding are explained by rounding.

Other rounding changes the results of operations, not the order of the sums inside of them, which compiled code may
change. Compiled code of six small networks differed from eager PyTorch by at most 1.0 times that effect. Single sums
are worse: of random float32 numbers that cancel, 2,000 added one after another are off by more than 16 times in one of
twenty cases, and 500 by more than 12 times in one of a hundred.
"""


_FROM_POOLS = ("optimizer", "weight")
"""Kinds of results that are computed from gradients."""


@dataclass(frozen=True, kw_only=True)
class Mismatch:
    """A result that differs by more than rounding."""

    quantity: Quantity
    explained: float
    """The distance that rounding explains."""

    explained_excess: float
    """How much larger or smaller rounding makes it on the whole, as a fraction."""

    def __str__(self) -> str:
        found, expected = self.quantity.values
        how = f"relative difference {self.quantity.distance:.2g}, of which rounding explains {self.explained:.1g}"
        if self.quantity.distance <= self.explained:
            how = (
                f"on the whole it is {1.0 + self.quantity.excess:.3g} times as large, and rounding explains a "
                f"difference of {100.0 * self.explained_excess:.1g} %"
            )
        return f"{self.quantity} is {found} in the program and {expected} in eager PyTorch ({how})"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The result of a comparison."""

    quantities: Sequence[Quantity]
    mismatches: Sequence[Mismatch] = ()
    was_repeated: bool = False
    """Whether eager PyTorch had to run again with other rounding."""

    unrepeatable: Quantity | None = None
    """An output that eager PyTorch does not compute again from the same start, if there is one in this process."""

    @property
    def agrees(self) -> bool:
        """Whether rounding explains all differences."""
        return not self.mismatches and self.unrepeatable is None

    def __str__(self) -> str:
        counts: dict[str, int] = {}
        for quantity in self.quantities:
            counts[quantity.kind] = counts.get(quantity.kind, 0) + 1
        distances = worst(self.quantities)
        return ", ".join(
            f"{count} {_PLURAL[kind] if count > 1 else _SINGULAR[kind]} (within {distances[kind]:.1g})"
            for kind, count in counts.items()
        )


_SINGULAR = {"output": "output", "buffer": "buffer", "optimizer": "optimizer tensor", "weight": "updated weight"}
_PLURAL = {kind: f"{word}s" for kind, word in _SINGULAR.items()}


def judge(
    quantities: Sequence[Quantity],
    tolerance: float,
    repetitions: Iterable[Callable[[], Outcome | None]],
    anyone: Callable[[bool], bool],
    again: Iterable[Callable[[], Outcome | None]] = (),
    *,
    is_suspect: bool = False,
    pools: float = 0.0,
) -> Verdict:
    """Compare; while a difference is unexplained, repeat the reference with other rounding.

    Before, ``again`` repeats it without any change: differences of a forward that is not repeatable are not
    rounding. If such a forward ``is_suspect``, that is done even if all results agree. ``anyone`` tells whether
    something is true in any process: all of them repeat together. ``pools`` is the distance that needs no explanation
    in what is computed from pooled gradients, whose type may be a coarser one.
    """
    plain = {id(each): max(tolerance, pools) if each.kind in _FROM_POOLS else tolerance for each in quantities}
    explained = dict(plain)
    # Errors of many numbers cancel out in an excess, so it shows a wrong factor that the errors of a coarse type hide.
    excess = {id(each): plain[id(each)] + each.excess_by_storing for each in quantities}

    def unexplained() -> list[Quantity]:
        return [
            each
            for each in quantities
            if not each.distance <= explained[id(each)]
            or (each.most_excess > excess[id(each)] and abs(each.excess) > excess[id(each)])
        ]

    was_repeated = False

    for repeat in again if anyone(is_suspect or bool(unexplained())) else ():
        other = repeat()
        changed = [] if other is None else [each for each in quantities if _changes(each, other, tolerance)]
        if anyone(bool(changed)):
            return Verdict(quantities=quantities, unrepeatable=changed[0] if changed else None)
    for repeat in repetitions:
        if not anyone(bool(unexplained())):
            break
        was_repeated = True
        other = repeat()
        if other is not None:
            for quantity in quantities:
                number, apart = id(quantity), quantity.distance_of(other)
                explained[number] = max(explained[number], plain[number] + _FACTOR * apart)
                least = plain[number] + quantity.excess_by_storing
                if quantity.most_excess > least:
                    # What independent errors of this size add up to.
                    together = max(abs(quantity.excess_of(other)), apart / math.sqrt(max(1, quantity.expected.numel())))
                    excess[number] = max(excess[number], least + _FACTOR * together)
    mismatches = [
        Mismatch(quantity=each, explained=explained[id(each)], explained_excess=excess[id(each)])
        for each in unexplained()
    ]
    return Verdict(quantities=quantities, mismatches=mismatches, was_repeated=was_repeated)


def _changes(quantity: Quantity, other: Outcome, tolerance: float) -> bool:
    """Whether an output differs when eager PyTorch computes it again."""
    return quantity.kind == "output" and not quantity.distance_of(other) <= tolerance
