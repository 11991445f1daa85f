"""Records of runs, made up for rules and comparisons; and scripts that run in processes of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pilotage.proof.records import ProcessRecord, ScriptRecord, Update


def update(number: int, **changes: Any) -> Update:
    """An eager update by SGD of 4 samples."""
    start = 4 * (number - 1)
    load = {"loader": 0, "epoch": 0, "samples": 4, "indices": list(range(start, start + 4)), "content": None}
    plain = {
        "step": number,
        "losses": [1.0 / number],
        "exchanges": 0,
        "loads": [load],
        "rates": [0.1],
        "mode": "eager",
        "device": "cpu",
        "line": "train.py:20",
        "works": True,
        "optimizer": 0,
    }
    return Update(plain | changes)


def digest(*values: float, name: str = "weight") -> dict[str, Any]:
    """The digest of a small tensor: its sketch is the tensor itself."""
    padded = [*values, *[0.0] * (16 - len(values))]
    norm = sum(each * each for each in values) ** 0.5
    return {"name": name, "shape": [len(values)], "type": "float32", "norm": norm, "sketch": padded}


@pytest.fixture
def process() -> Callable[..., ProcessRecord]:
    """Make the record of a process."""

    def make(
        count: int = 10,
        *,
        rank: int = 0,
        size: int = 1,
        stage: int | None = None,
        events: tuple[dict[str, Any], ...] = (),
        weights: dict[int, list[dict[str, Any]]] | None = None,
        end: str | None = "finished",
        summary: dict[str, Any] | None = None,
        each: Callable[[int], dict[str, Any]] = lambda number: {},
    ) -> ProcessRecord:
        trained = {"number": 0, "kind": "SGD", "line": "train.py:5", "steps": count, "updates": count, "after": 0}
        return ProcessRecord(
            header={"rank": rank, "size": size, "stage": stage},
            updates=tuple(update(number, **each(number)) for number in range(1, count + 1)),
            weights={0: [digest(1.0, 2.0)], count: [digest(1.5, 2.5)]} if weights is None else weights,
            events=({"event": "loader", "number": 0, "line": "train.py:7", **LOADER}, *events),
            summary={"optimizers": [trained | {"parameters": 2}], **(summary or {})},
            end=None if end is None else {"how": end},
        )

    return make


LOADER = {
    "batch_size": 4,
    "drop_last": False,
    "dataset": 40,
    "drawn": 40,
    "batches": 10,
    "sampler": "RandomSampler",
    "replacement": False,
}


@pytest.fixture
def run_of() -> Callable[..., ScriptRecord]:
    """Make the record of a command from those of its processes."""

    def make(*processes: ProcessRecord) -> ScriptRecord:
        return ScriptRecord(trained=processes, others=())

    return make


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., Path]:
    """Write a script."""

    def make(text: str, name: str = "script.py") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return make
