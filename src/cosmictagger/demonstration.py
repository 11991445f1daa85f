"""A demonstration in two minutes: generate events, train on them, evaluate and draw held-out ones."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from cosmictagger.command import main as run

FOLDER = Path("output/cosmic")
HELD_OUT = 40
OPTIONS = (
    "run.id=cosmic",
    f"output_dir={FOLDER}",
    "network=a21",
    "network.depth=3",
    "network.bottleneck_deepest=64",
    "data.downsample=4",
    "data.img_transform=true",
    "data.events=160",
    f"data.aux_events={HELD_OUT}",
    "data.seed=1",
    "framework.seed=1",
    "run.minibatch_size=4",
)
"""Small images and a small network, so that any laptop finds tracks within minutes."""

STEPS = 240
WANTED_RISE = 0.2


def main() -> int:
    """Run the demonstration; returns 1 if training did not learn to find cosmic rays."""
    # Otherwise the run would resume from an earlier demonstration and start with trained weights.
    shutil.rmtree(FOLDER, ignore_errors=True)
    training = ("mode=train", *OPTIONS, "mode.optimizer.learning_rate=0.003", "run.aux_iterations=40")
    iou = []
    for steps in (1, STEPS - 1):
        if code := run([*training, f"run.iterations={steps}"]) or run(["mode=inference", *OPTIONS]):
            return code
        iou.append(json.loads((FOLDER / "inference" / "report.json").read_text())["metrics"]["Average/Cosmic_IoU"])
    if code := run(["mode=visualize", *OPTIONS, "mode.events=4"]):
        return code
    before, after = iou
    print(f"\nCosmic IoU on {HELD_OUT} held-out events: {before:.3f} after one step, {after:.3f} after {STEPS}.")
    print(f"Metrics: {FOLDER}/train_metrics.csv and test_metrics.csv")
    print(f"Events: {FOLDER}/displays/; log: {FOLDER}/process.log")
    return 0 if after - before >= WANTED_RISE else 1


if __name__ == "__main__":
    sys.exit(main())
