"""Microbenchmarks of single operations on one device, and the constants of its model that follow from them.

    python -m benchmarks.prediction.calibrate --device cuda --json calibration.json

Every measurement is written to the file as soon as it is made. `pilotage.prediction.devices` describes the constants.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path

import torch

from benchmarks.prediction.fitting import constants_of, lines_of
from benchmarks.prediction.operations import convolutions, normalizations, overheads, products, streaming
from benchmarks.prediction.operations.calibration import Calibration


def main() -> None:
    """Measure everything, write the file and print the constants."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--tiny", action="store_true", help="a few small sizes, to try the script without a card")
    parser.add_argument("--only", default="", help="a regular expression for the names of groups")
    arguments = parser.parse_args()
    tiny = arguments.tiny
    run = Calibration(arguments.device, arguments.json, 0.999 if tiny else 1.0)
    torch.manual_seed(0)
    groups: dict[str, tuple[float, Callable[[Calibration], None]]] = {
        "launches": (5, overheads.launches),
        "workspaces": (5, overheads.workspaces),
        "calls": (5, overheads.calls),
        "host copies": (5, overheads.host_copies),
        "products": (25, products.products),
        "batched products": (5, products.batched_products),
        "elementwise": (15, streaming.elementwise),
        "many tensors": (5, streaming.many_tensors),
        "mixed lists": (5, streaming.mixed_lists),
        "copies": (10, streaming.copies),
        "normalizations": (20, normalizations.normalizations),
        "attention": (10, products.attention),
        "gathers": (3, streaming.gathers),
        "convolutions": (110, convolutions.convolutions),
    }
    for name, (seconds, measure) in groups.items():
        if re.search(arguments.only, name):
            with run.group(name, seconds):
                measure(run)
    run.write()
    print("\n".join(lines_of(constants_of(run.rows))))


if __name__ == "__main__":
    main()
