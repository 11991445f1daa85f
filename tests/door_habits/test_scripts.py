"""Ordinary training scripts, one habit each: a few changed lines, the results of eager PyTorch, and a passed check."""

from __future__ import annotations

import difflib
import logging
import runpy
from pathlib import Path

import pytest
import torch
from torch import nn

SCRIPTS = Path(__file__).parent / "scripts"
HABITS = sorted(each.name for each in SCRIPTS.iterdir() if each.is_dir())
MOST_LINES = 5

LOOSER = {"autocast": 1e-2}
"""bfloat16 has three digits."""


def written(habit: str) -> list[str]:
    """The lines that the user has to write; the others are removed or stay."""
    before, after = ((SCRIPTS / habit / f"{name}.py").read_text().splitlines() for name in ("before", "after"))
    return [line[2:] for line in difflib.ndiff(before, after) if line.startswith("+ ") and line[2:].strip()]


def test_there_are_thirty():
    assert len(HABITS) >= 30


@pytest.mark.parametrize("habit", HABITS)
def test_a_script_needs_few_new_lines(habit):
    assert 0 < len(written(habit)) <= MOST_LINES


@pytest.mark.slow
@pytest.mark.parametrize("habit", HABITS)
def test_the_changed_script_equals_eager_and_passes_the_check(habit, monkeypatch, caplog):
    monkeypatch.setenv("PILOTAGE_BACKEND", "cpu")
    monkeypatch.setenv("PILOTAGE_TIER", "graph")
    expected = modules_of(runpy.run_path(str(SCRIPTS / habit / "before.py")))
    with caplog.at_level(logging.INFO, logger="pilotage"):
        found = modules_of(runpy.run_path(str(SCRIPTS / habit / "after.py")))
    said = [record.getMessage() for record in caplog.records]
    assert any(message.startswith("Agrees with eager PyTorch") for message in said)
    assert not [message for message in said if message.startswith("Not compared")]
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert found.keys() == expected.keys()
    tolerance = LOOSER.get(habit, 2e-5)
    for name, module in expected.items():
        for entry, tensor in module.state_dict().items():
            torch.testing.assert_close(found[name].state_dict()[entry], tensor, rtol=tolerance, atol=tolerance)


def modules_of(names):
    return {name: value for name, value in names.items() if isinstance(value, nn.Module)}
