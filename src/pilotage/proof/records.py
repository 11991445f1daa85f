"""What watched processes have recorded, read back as values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pilotage.proof.weights import complete_digests

__all__ = ["ProcessRecord", "ScriptRecord", "Update", "read_run"]

Fields = Mapping[str, Any]

LOAD_FIELDS = ("loader", "epoch", "samples", "indices", "content")
"""What is written about a batch, in this order."""

_LONGEST_ERROR = 300
"""An error with more characters is shown by its beginning and its end."""


@dataclass(frozen=True, slots=True)
class Update:
    """One update of the weights in one process."""

    fields: Fields

    @property
    def step(self) -> int:
        """Counted from 1."""
        return int(self.fields["step"])

    @property
    def losses(self) -> list[float]:
        """What each backward pass of this update started from."""
        return [float(each) for each in self.fields["losses"]]

    @property
    def samples(self) -> int | None:
        """How many samples went into it in this process; None if no loader was seen."""
        loads = self.fields["loads"]
        return sum(each["samples"] for each in loads) if loads else None

    @property
    def indices(self) -> list[int] | None:
        """The samples by their index in the data set; None if they have none."""
        loads = self.fields["loads"]
        if not loads or any(each["indices"] is None for each in loads):
            return None
        return [index for each in loads for index in each["indices"]]

    @property
    def content(self) -> list[float] | None:
        """Digests of the samples' values, if they were taken for this update."""
        found = [each["content"] for each in self.fields["loads"]]
        return [number for each in found for number in each] if found and None not in found else None

    @property
    def rates(self) -> list[float]:
        """The learning rates that were applied."""
        return [float(each) for each in self.fields.get("rates", ())]

    @property
    def is_eager(self) -> bool:
        """Whether the script made the update itself, and no program."""
        return bool(self.fields["mode"] == "eager")

    @property
    def line(self) -> str | None:
        """The user's line that trains."""
        return self.fields.get("line")

    @property
    def device(self) -> str:
        """Where it was computed."""
        return str(self.fields.get("device", "unknown"))

    @property
    def weight_types(self) -> tuple[str, ...]:
        """The types of the weights that it changed."""
        return tuple(self.fields.get("weights", ()))

    @property
    def last_product(self) -> str | None:
        """The type of the last product before the loss; None if it is not known."""
        return self.fields.get("product")

    @property
    def computed_in(self) -> Mapping[str, int] | None:
        """How many products were computed in each type; None if they were not looked at in this update."""
        return self.fields.get("computed_in")


@dataclass(frozen=True, kw_only=True)
class ProcessRecord:
    """The record of one process."""

    header: Fields
    updates: tuple[Update, ...]
    weights: Mapping[int, list[dict[str, Any]]]
    """Digests of the weights after some of the updates; 0 is before the first."""

    events: tuple[Fields, ...]
    summary: Fields = field(default_factory=dict)
    end: Fields | None = None
    """How the process ended; None if it was killed."""

    @property
    def rank(self) -> int:
        """This process's place in its job."""
        return int(self.header["rank"])

    @property
    def reached_its_end(self) -> bool:
        """Whether the script ran to its own end."""
        return self.end is not None and self.end["how"] == "finished"

    @property
    def was_stopped(self) -> bool:
        """Whether the script was ended because it continued to train."""
        return self.end is not None and self.end["how"] == "stopped"

    @property
    def error(self) -> str | None:
        """The error with which the script ended, in one line; None if it ended without."""
        if self.end is None or self.end["how"] != "failed":
            return None
        text = " ".join(str(self.end.get("error")).split())
        return (
            text if len(text) <= _LONGEST_ERROR else f"{text[: _LONGEST_ERROR // 2]} … {text[-_LONGEST_ERROR // 2 :]}"
        )

    def named(self, event: str) -> Iterator[Fields]:
        """The events of one kind."""
        return (each for each in self.events if each["event"] == event)

    @cached_property
    def types(self) -> tuple[str | None, ...]:
        """The type in which most products of each update were computed; None if it is not known.

        All products are looked at in one update of an eager script. Others are as this one if the last product before
        the loss and the weights have the same types, or the weights if the last product is not known; otherwise that
        last product counts, and without one the weights.
        """
        known = {
            (each.last_product, each.weight_types): _most(each.computed_in)
            for each in self.updates
            if each.is_eager and each.computed_in
        }
        return tuple(_type_of(each, known) for each in self.updates)

    def first(self, fact: str) -> Any:
        """The first value of a fact that some of the updates have."""
        return next((each.fields[fact] for each in self.updates if each.fields.get(fact) is not None), None)


@dataclass(frozen=True, kw_only=True)
class ScriptRecord:
    """All processes of one command that have trained, and those that have not."""

    trained: tuple[ProcessRecord, ...]
    """In the order of their ranks."""

    others: tuple[ProcessRecord, ...]

    @property
    def first(self) -> ProcessRecord:
        """The process with rank 0."""
        return self.trained[0]

    @property
    def steps(self) -> int:
        """How many updates every process has made."""
        return min((len(each.updates) for each in self.trained), default=0)

    @property
    def processes(self) -> int:
        """How many processes trained."""
        return len(self.trained)


def _type_of(update: Update, known: Mapping[tuple[str | None, tuple[str, ...]], str]) -> str | None:
    if not update.is_eager:
        return _most(update.computed_in) if update.computed_in else None
    seen = (update.last_product, update.weight_types)
    if seen in known:
        return known[seen]
    if update.last_product is not None:
        return update.last_product
    alike = {kind for (_, weights), kind in known.items() if weights == update.weight_types} or {*update.weight_types}
    return alike.pop() if len(alike) == 1 else None


def _most(types: Mapping[str, int]) -> str:
    return max(types, key=lambda name: types[name])


def read_run(folder: Path) -> ScriptRecord:
    """Read the records of one command."""
    found = [record for path in sorted(folder.glob("*.jsonl")) if (record := _read(path)) is not None]
    trained = sorted((each for each in found if each.updates), key=lambda each: each.rank)
    return ScriptRecord(trained=tuple(trained), others=tuple(each for each in found if not each.updates))


def _read(path: Path) -> ProcessRecord | None:
    lines = [parsed for text in path.read_text(errors="replace").splitlines() if (parsed := _parsed(text)) is not None]
    kinds = {"process", "updates", "tensors", "weights", "summary", "end", "joined"}
    header = next((each for each in lines if each["event"] == "process"), None)
    if header is None:
        return None
    last = {each["event"]: each for each in lines}
    if "group" in last and header.get("size", 1) == 1:
        header |= {"rank": last["group"]["rank"], "size": last["group"]["size"]}
    joined: dict[int, list[float]] = {}
    for each in lines:
        if each["event"] == "joined":
            joined.setdefault(each["step"], []).extend(each["rates"])
    return ProcessRecord(
        header=header,
        updates=tuple(
            _update(row, each["common"], each["epoch"], joined)
            for each in lines
            if each["event"] == "updates"
            for row in each["rows"]
        ),
        weights=_digests(lines),
        events=tuple(each for each in lines if each["event"] not in kinds),
        summary=last.get("summary", {}),
        end=last.get("end"),
    )


def _update(row: list[Any], common: Fields, epoch: float, joined: Mapping[int, list[float]]) -> Update:
    """An update from its row, with what it shares with its neighbours, and the rates of other optimizers."""
    step, losses, exchanges, moment, loads, skipped, facts = row
    if step in joined:
        common = {**common, "rates": [*common.get("rates", ()), *joined[step]]}
    return Update(
        {
            **common,
            "step": step,
            "losses": losses,
            "exchanges": exchanges,
            "time": epoch + moment,
            "moment": moment,
            "loads": [dict(zip(LOAD_FIELDS, load, strict=True)) for load in loads],
            "skipped": skipped,
            **facts,
        }
    )


def _digests(lines: Iterable[Fields]) -> dict[int, list[dict[str, Any]]]:
    """The digests of all weights by update; each line of sketches belongs to the last description of tensors."""
    found: dict[int, list[dict[str, Any]]] = {}
    tensors: list[dict[str, Any]] = []
    for each in lines:
        if each["event"] == "tensors":
            tensors = each["tensors"]
        elif each["event"] == "weights":
            found[each["step"]] = complete_digests(tensors, each["sketches"])
    return found


def _parsed(text: str) -> dict[str, Any] | None:
    """One line; None for the last one of a killed process, which may be cut."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) and "event" in value else None
