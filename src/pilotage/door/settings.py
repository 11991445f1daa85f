"""The options of a program, from plain numbers and words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import Any, TypedDict, Unpack

from pilotage.errors import OptionError
from pilotage.options.batching import Batching
from pilotage.options.check import Check, OnMismatch
from pilotage.options.choices import (
    Accumulation,
    NonFiniteLoss,
    OutputMode,
    PipelineOrder,
    Pooling,
    Recomputation,
    Reduction,
    ReplicaGrouping,
    Tier,
)
from pilotage.options.execution import Execution
from pilotage.options.locations import Locations
from pilotage.options.suggestions import did_you_mean


class Options(TypedDict, total=False):
    """The options of `training` and `inference`, under the names that they have in `pilotage.options`.

    Large because each key is one option.
    """

    device_iterations: int
    gradient_accumulation: int
    replicas: int
    replicas_per_input: int
    input_grouping: str | ReplicaGrouping
    outputs: str | OutputMode | None
    output_period: int
    reduction: str | Reduction
    pooling: str | Pooling
    seed: int | None
    broadcast_buffers: bool
    attributes_once: bool
    backend: str | None
    cards: Sequence[str] | None
    tier: str | Tier | None
    cache_directory: str | Path | None
    nonfinite_loss: str | NonFiniteLoss
    check: str | int | None
    on_mismatch: str | OnMismatch
    accumulation: str | Accumulation | None
    recomputation: str | Recomputation
    locations: Locations | Mapping[str, int | None]
    pipeline: str | PipelineOrder | None
    synthetic_inputs: bool
    anchors: Sequence[str]
    name: str | None
    shapes: int


_CHOICES: Mapping[str, type[Enum]] = {
    "input_grouping": ReplicaGrouping,
    "outputs": OutputMode,
    "reduction": Reduction,
    "pooling": Pooling,
    "tier": Tier,
    "nonfinite_loss": NonFiniteLoss,
    "accumulation": Accumulation,
    "recomputation": Recomputation,
    "pipeline": PipelineOrder,
}
"""Options that take a word."""

_BATCHING = frozenset(field.name for field in fields(Batching))


def execution(**options: Unpack[Options]) -> Execution:
    """The options of a program; omitted ones have the defaults of `pilotage.options`."""
    given: dict[str, Any] = dict(options)
    given["check"] = Check.of(given.pop("check", None), given.pop("on_mismatch", OnMismatch.RAISE))
    for name in given.keys() & _CHOICES.keys():
        if given[name] is not None:
            given[name] = _named(_CHOICES[name], given[name], name)
    for name in given.keys() & {"cards", "anchors"}:
        given[name] = _names(given[name], name)
    if given.get("cache_directory") is not None:
        given["cache_directory"] = Path(given["cache_directory"])
    if "locations" in given:
        given["locations"] = _locations(given["locations"])
    batching = Batching(**{name: given.pop(name) for name in given.keys() & _BATCHING})
    return Execution(batching=batching, **given)


def _named(choices: type[Enum], chosen: object, option: str) -> Enum:
    try:
        return choices(chosen)
    except ValueError:
        known = [str(choice.value) for choice in choices]
        hint = did_you_mean(chosen, known) if isinstance(chosen, str) else ""
        names = ", ".join(map(repr, known))
        raise OptionError(f"{option} is {chosen!r}.{hint} Choose one of: {names}.") from None


def _names(given: Sequence[str] | None, option: str) -> tuple[str, ...] | None:
    if isinstance(given, str):
        raise OptionError(f"{option} is {given!r}. It takes a list of names: {option}=[{given!r}].")
    return None if given is None else tuple(given)


def _locations(given: Locations | Mapping[str, int | None]) -> Locations:
    if isinstance(given, Locations):
        return given
    known = [field.name for field in fields(Locations)]
    for name in given:
        if name not in known:
            raise OptionError(
                f"locations has no {name!r}.{did_you_mean(name, known)} It takes numbers of elements under the names "
                f"{', '.join(known)}."
            )
    return Locations(**given)
