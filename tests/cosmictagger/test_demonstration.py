"""``make cosmic``."""

import json
import logging

import numpy as np
import pytest

from cosmictagger import demonstration
from cosmictagger.data.generator.file import generate_file
from cosmictagger.data.larcv.event_file import EventFile
from cosmictagger.data.larcv.predictions import PredictionWriter


@pytest.fixture
def pretended(tmp_path, monkeypatch):
    """Training takes a minute; here only the folder at the start and the screen matter."""
    monkeypatch.chdir(tmp_path)
    folder = demonstration.FOLDER
    checkpoint, report = folder / "checkpoints" / "model-240.ckpt", folder / "inference" / "report.json"

    def run(words, *, console):
        assert not console
        log = logging.getLogger("cosmictagger")
        log.setLevel(logging.INFO)
        if words[0] == "mode=inference":
            report.parent.mkdir(parents=True, exist_ok=True)
            found = 0.8 if checkpoint.exists() else 0.1
            names = demonstration.SCORES.values()
            report.write_text(json.dumps({"metrics": dict.fromkeys(names, found)}))
        elif words[-1] == f"run.iterations={demonstration.STEPS - 1}":
            values = {"loss": 2.5, **dict.fromkeys(demonstration.SCORES.values(), 0.5)}
            log.info("test Step 40", extra={"metrics": ("test", 40, values)})
            log.info("a line of the log")
            checkpoint.parent.mkdir(parents=True)
            checkpoint.touch()
        else:
            log.info("Generated 40 of 160 events", extra={"generated": (40, 160)})
        return 0

    monkeypatch.setattr(demonstration, "run", run)


def test_the_demonstration_starts_over_each_time(pretended, capsys):
    assert [demonstration.main() for _ in range(2)] == [0, 0]
    said = capsys.readouterr().out
    assert said.count("  cosmic IoU                      0.100       0.800  ████████████████████████") == 2
    assert said.count("  neutrino IoU                    0.100       0.800") == 2


def test_the_screen_shows_progress_and_not_the_log(pretended, capsys):
    demonstration.main()
    said = capsys.readouterr().out
    assert "40 of 160 events drawn" in said
    assert "    40    2.500        0.500          0.500" in said
    assert "a line of the log" not in said
    assert len(said.splitlines()) < 40


@pytest.fixture
def predicted(tmp_path, monkeypatch):
    """Predictions of three events at downsample 4: the truth, without the neutrino of the first event."""
    monkeypatch.setattr(demonstration, "FOLDER", tmp_path)
    generate_file(tmp_path / "events.h5", events=3, seed=3)
    with (
        EventFile(tmp_path / "events.h5") as source,
        PredictionWriter(tmp_path / "predictions.h5", source=source, downsample=4) as writer,
    ):
        batch = source.dense_batch(range(3), 4)
        batch.label[0][batch.label[0] == 2] = 0
        writer.write(batch, np.minimum(batch.label, 1))
    return batch


@pytest.mark.slow
def test_a_terminal_shows_a_held_out_event_with_a_clear_neutrino(predicted, monkeypatch, capsys):
    monkeypatch.setattr(demonstration, "CLEAR", 1)
    entry, truth, prediction = demonstration._clear_event()
    assert entry == next(number for number in range(3) if (predicted.label[number, -1] == 2).any()) > 0
    assert np.array_equal(truth, predicted.label[entry, -1])
    assert np.array_equal(prediction, np.minimum(truth, 1))
    demonstration._show_event()
    assert capsys.readouterr().out == ""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    demonstration._show_event()
    said = capsys.readouterr().out
    assert f"Held-out event {entry}, collection plane" in said
    assert "truth" in said
    assert "prediction" in said
