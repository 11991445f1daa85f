"""A demonstration in two minutes: generate events, train on them, evaluate and draw held-out ones."""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cosmictagger.command import main as run
from cosmictagger.data.detector import COSMIC, NEUTRINO
from cosmictagger.data.events import Array
from cosmictagger.data.larcv import layout
from cosmictagger.data.larcv.event_file import EventFile
from cosmictagger.records.progress import say, vanishing_bars

FOLDER = Path("output/cosmic")
EVENTS, HELD_OUT = 160, 40
OPTIONS = (
    "run.id=cosmic",
    f"output_dir={FOLDER}",
    "network=a21",
    "network.depth=3",
    "network.bottleneck_deepest=64",
    "data.downsample=4",
    "data.img_transform=true",
    f"data.events={EVENTS}",
    f"data.aux_events={HELD_OUT}",
    "data.seed=1",
    "framework.seed=1",
    "run.minibatch_size=4",
)
"""Small images and a small network, so that any laptop finds tracks within minutes."""

STEPS = 240
WANTED_RISE = 0.2
SCORES = {
    "cosmic IoU": "Average/Cosmic_IoU",
    "neutrino IoU": "Average/Neutrino_IoU",
    "accuracy without background": "Average/Non_Bkg_Accuracy",
}
BAR = 30
CLEAR = 25
"""Pixels of a neutrino that a person sees at once."""

MOST_COLUMNS = 134


def main() -> int:
    """Run the demonstration; returns 1 if training did not learn to find cosmic rays."""
    began = time.perf_counter()
    # Lines about programs would interrupt the table; what ran is printed at the end.
    os.environ.setdefault("PILOTAGE_LOG_LEVEL", "WARNING")
    # Otherwise the run would resume from an earlier demonstration and start with trained weights.
    shutil.rmtree(FOLDER, ignore_errors=True)
    screen = _Screen()
    logging.getLogger("cosmictagger").addHandler(screen)
    try:
        with vanishing_bars():
            code, scores = _runs(screen)
    finally:
        logging.getLogger("cosmictagger").removeHandler(screen)
    if code:
        return code
    _show_loss()
    _show_event()
    _show_scores(scores)
    _show_places()
    print(f"\n{time.perf_counter() - began:.0f} seconds in all. Everything that was logged: {FOLDER}/process.log")
    rise = scores[1][SCORES["cosmic IoU"]] - scores[0][SCORES["cosmic IoU"]]
    return 0 if rise >= WANTED_RISE else 1


def _runs(screen: _Screen) -> tuple[int, list[dict[str, float]]]:
    """All runs of the demonstration; returns the exit code, and the scores after the first and the last step."""
    say("CosmicTagger finds cosmic rays and neutrinos in images of a liquid-argon detector.\n")
    say(f"A generator draws {EVENTS} events to train on and {HELD_OUT} that are held out. A small network, A21, learns")
    say(f"from {STEPS} batches of four. IoU: the pixels that prediction and truth share, of all that either has.\n")
    training = ("mode=train", *OPTIONS, "mode.optimizer.learning_rate=0.003", "run.aux_iterations=40")
    scores: list[dict[str, float]] = []
    for steps in (1, STEPS - 1):
        if steps > 1:
            screen.show_rows()
        if code := _quiet([*training, f"run.iterations={steps}"]) or _quiet(["mode=inference", *OPTIONS]):
            return code, scores
        scores.append(json.loads((FOLDER / "inference" / "report.json").read_text())["metrics"])
    return _quiet(["mode=visualize", *OPTIONS, "mode.events=4"]), scores


def _quiet(words: Sequence[str]) -> int:
    return run(words, console=False)


def _show_loss() -> None:
    from cosmictagger.displays.curve import column, sparkline

    losses = column(FOLDER / "train_metrics.csv", "loss").values
    if len(losses):
        print(f"\n  Loss {losses[0]:.2f} {sparkline(losses)} {losses[-10:].mean():.2f}")


def _show_event() -> None:
    """Draw a held-out event on a terminal with colours; others cannot show its classes."""
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ or not (FOLDER / "predictions.h5").is_file():
        return
    from cosmictagger.displays.letters import painted, side_by_side

    entry, truth, prediction = _clear_event()
    cosmic, neutrino = painted(COSMIC, "cosmic"), painted(NEUTRINO, "neutrino")
    print(f"\nHeld-out event {entry}, collection plane: {cosmic} and {neutrino} pixels\n")
    width = min(shutil.get_terminal_size().columns, MOST_COLUMNS) - 2
    for line in side_by_side({"truth": truth, "prediction": prediction}, width):
        print(f"  {line}")


def _clear_event() -> tuple[int, Array, Array]:
    """The first held-out event whose neutrino is clear in the collection plane; truth and prediction there."""
    path = FOLDER / "predictions.h5"
    with EventFile(path) as truths, EventFile(path, label=layout.PREDICTION_PRODUCER) as predictions:
        labels = ((entry, truths.event(entry).dense()[1][-1]) for entry in range(len(truths)))
        clear = (found for found in labels if np.count_nonzero(found[1] == NEUTRINO) >= CLEAR)
        entry, truth = next(clear, (0, truths.event(0).dense()[1][-1]))
        return entry, truth, predictions.event(entry).dense()[1][-1]


def _show_scores(scores: Sequence[dict[str, float]]) -> None:
    print(f"\n{f'On {HELD_OUT} held-out events':<30}{'1 step':>9}{f'{STEPS} steps':>12}")
    for name, key in SCORES.items():
        before, after = (each[key] for each in scores)
        print(f"  {name:<28}{before:>9.3f}{after:>12.3f}  {'█' * round(BAR * after):<{BAR}}")


def _show_places() -> None:
    report = FOLDER / "report.json"
    if report.is_file():
        placement = json.loads(report.read_text())["placement"]
        ran = f"{placement['backend']}, tier {placement['tier']}"
        print(f"\nTrained on {placement['device']} by {ran}:\n  {placement['reason']}.")
    print(f"Pictures: {FOLDER}/training.png and {FOLDER}/displays/event_0.png to event_3.png")
    print(f"Numbers: {FOLDER}/train_metrics.csv and test_metrics.csv; predictions: {FOLDER}/predictions.h5")


class _Screen(logging.Handler):
    """Shows the part of the log that is meant for people: progress of the generator, and a line for each validation."""

    def __init__(self) -> None:
        super().__init__()
        self._rows = False
        self._shown: dict[str, Callable[[Any], None]] = {"generated": self._generated, "metrics": self._metrics}

    def show_rows(self) -> None:
        """Show validations from now on."""
        self._rows = True
        say(f"{'step':>6}{'loss':>9}{'cosmic IoU':>13}{'neutrino IoU':>15}   of four held-out events")

    def emit(self, record: logging.LogRecord) -> None:
        for name, show in self._shown.items():
            if (content := getattr(record, name, None)) is not None:
                show(content)

    def _generated(self, content: tuple[int, int]) -> None:
        done, total = content
        say(f"  {done:>4} of {total} events drawn")

    def _metrics(self, content: tuple[str, int, dict[str, float]]) -> None:
        kind, step, values = content
        if kind == "test" and self._rows:
            numbers = values["loss"], values[SCORES["cosmic IoU"]], values[SCORES["neutrino IoU"]]
            say("{:>6}{:>9.3f}{:>13.3f}{:>15.3f}".format(step, *numbers))


if __name__ == "__main__":
    sys.exit(main())
