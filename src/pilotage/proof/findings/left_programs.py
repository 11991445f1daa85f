"""Programs that a script stops using: from some update on it trains the plain module with the same weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pilotage.proof.records import ProcessRecord, Update
from pilotage.proof.weights import match_weights, total_distance

__all__ = ["updates_past_program"]

_NEAR = 0.5
"""The largest distance, relative to their size, between weights that count as those of one model."""


def updates_past_program(process: ProcessRecord) -> tuple[Update, list[Update]] | None:
    """The last update of a program, and the eager updates of the same weights after it; None if there are none.

    A single one does not count: it may be the last batch of an epoch, too small for the program.
    """
    programs = [each for each in process.updates if not each.is_eager]
    if not programs:
        return None
    last = programs[-1]
    eager = [each for each in process.updates if each.is_eager and each.step > last.step and each.fields["works"]]
    number = last.fields.get("optimizer")
    same = [each for each in eager if number is not None and each.fields["optimizer"] == number]
    if len(same) > 1:
        return last, same
    # A plain module with another optimizer may be a copy that is trained equally often, for comparison.
    if len(eager) > len(programs) and _are_of_one_model(process, last, eager):
        return last, eager
    return None


def _are_of_one_model(process: ProcessRecord, last: Update, eager: Sequence[Update]) -> bool:
    """Whether eager updates continued from the weights that a program had trained, not from other or initial ones."""
    trained = next((process.weights[step] for step in range(last.step, 0, -1) if step in process.weights), None)
    found = next((process.weights[each.step] for each in eager if each.step in process.weights), None)
    initial = process.weights.get(0)
    if not trained or not found or not initial or not _shapes(trained) == _shapes(found) == _shapes(initial):
        return False
    apart, since = (total_distance(match_weights(found, other)) for other in (trained, initial))
    return apart < since and apart < _NEAR * math.hypot(*(each["norm"] for each in trained))


def _shapes(weights: Sequence[dict[str, Any]]) -> list[list[int]]:
    return sorted(each["shape"] for each in weights)
