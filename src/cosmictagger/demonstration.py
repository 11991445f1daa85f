"""A whole story in two minutes: draw events, train on them, judge held-out ones before and after, draw some of them."""

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
"""Small images and a small network: enough to see tracks found, on any laptop."""

STEPS = 240
WANTED_RISE = 0.2


def main() -> int:
    """Run it; fails where training did not find the cosmic rays."""
    # What an earlier story left would be gone on with, and judged as if it had been trained for one step.
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
    print(
        f"Metrics: {FOLDER}/train_metrics.csv and test_metrics.csv; events: {FOLDER}/displays/; log: {FOLDER}/process.log"
    )
    return 0 if after - before >= WANTED_RISE else 1


if __name__ == "__main__":
    sys.exit(main())
