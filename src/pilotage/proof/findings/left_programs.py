"""Programs that a script leaves: from some update on it trains the plain module with the same weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pilotage.proof.records import ProcessRecord, Update
from pilotage.proof.weights import match_weights, total_distance

__all__ = ["updates_past_program"]

_NEAR = 0.5
"""Weights of one model are nearer to each other than this share of their size; those of two models are not."""


def updates_past_program(process: ProcessRecord) -> tuple[Update, list[Update]] | None:
    """The last update of a program, and those that the script made of its weights since; None if there are none.

    A single one may be the rest of an epoch, smaller than the batches of the program.
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
    # With an optimizer of its own, the plain module may be a copy that is trained as often, for comparison.
    if len(eager) > len(programs) and _are_of_one_model(process, last, eager):
        return last, eager
    return None


def _are_of_one_model(process: ProcessRecord, last: Update, eager: Sequence[Update]) -> bool:
    """Whether eager updates went on from the weights that a program had trained, and not from others or the first."""
    trained = next((process.weights[step] for step in range(last.step, 0, -1) if step in process.weights), None)
    found = next((process.weights[each.step] for each in eager if each.step in process.weights), None)
    initial = process.weights.get(0)
    if not trained or not found or not initial or not _shapes(trained) == _shapes(found) == _shapes(initial):
        return False
    apart, since = (total_distance(match_weights(found, other)) for other in (trained, initial))
    return apart < since and apart < _NEAR * math.hypot(*(each["norm"] for each in trained))


def _shapes(weights: Sequence[dict[str, Any]]) -> list[list[int]]:
    return sorted(each["shape"] for each in weights)
