"""The command line of the tutorial."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def parsed(tutorial_module):
    return tutorial_module("command_line").parsed


def test_the_default_is_five_epochs_with_batches_of_sixteen(parsed) -> None:
    command, settings = parsed(["all"])
    assert command == "all"
    assert (settings.epochs, settings.batch_size, settings.device_iterations, settings.seed) == (5, 16, 1, 42)
    assert settings.subset is settings.data is None
    assert settings.output == Path("output")
    assert settings.images[0].name == "trousers.png"
    assert settings.images[0].is_file()


def test_every_option_is_passed_on(parsed, monkeypatch) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))
    words = "train --epochs 2 --batch-size 8 --device-iterations 3 --seed 7 --subset 99 --data d --output o"
    _, settings = parsed([*words.split(), "--backend", "cpu", "--tier", "eager"])
    assert (settings.epochs, settings.batch_size, settings.device_iterations) == (2, 8, 3)
    assert (settings.seed, settings.subset, settings.data, settings.output) == (7, 99, "d", Path("o"))
    assert os.environ["PILOTAGE_BACKEND"] == "cpu"
    assert os.environ["PILOTAGE_TIER"] == "eager"


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("", "COMMAND"),
        ("dance", "dance"),
        ("all --epochs 0", "'0' is not a whole number of at least 1"),
        ("all --epochs many", "'many' is not a whole number"),
        ("all --batch-size -3", "'-3' is not a whole number"),
        ("all --subset 1.5", "'1.5' is not a whole number"),
        ("all --tier fast", "fast"),
        ("all --wibble", "--wibble"),
        ("evaluate --epochs 3", "--epochs"),
        ("predict x.png --subset 3", "--subset"),
        ("all --plain --tier eager", "--tier needs poptorch"),
        ("all --plain --backend cpu", "--backend needs poptorch"),
        ("train --plain --device-iterations 2", "--device-iterations needs poptorch"),
    ],
)
def test_a_wrong_argument_gives_one_line_and_status_two(parsed, capsys, words: str, part: str) -> None:
    with pytest.raises(SystemExit) as ended:
        parsed(words.split())
    said = capsys.readouterr()
    assert ended.value.code == 2
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert part in said.err


def test_help_names_every_command(parsed, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        parsed(["--help"])
    assert ended.value.code == 0
    told = capsys.readouterr().out
    assert all(command in told for command in ("train", "evaluate", "predict", "all"))
