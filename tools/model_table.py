"""Print the table of the twelve models from several starts of a machine: python -m tools.model_table FILE [FILE ...].

Each file is the `models.json` of one start, as tools/measure_on_card.py writes it. A ratio of a start compares what ran
in it; the table has the ranges over the starts, and the summary takes the median of each model.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.twelve.results import EAGER, Model, details_of, geometric_mean, models_from_data

HEAD = (
    "| model | starts | eager | `torch.compile`'s best mode | Pilotage | ratio | peak memory |\n"
    "|---|--:|--:|--:|--:|--:|--:|"
)


def main() -> None:
    """Print the table."""
    print(table([models_from_data(details_of(Path(name))["models"]) for name in sys.argv[1:]]))


def table(starts: Sequence[Mapping[str, Model]]) -> str:
    """The table and its summary, as Markdown."""
    found: dict[str, list[Model]] = {}
    missing: list[str] = []
    for models in starts:
        for name, model in models.items():
            if model.is_compared:
                found.setdefault(name, []).append(model)
            if model.left_out:
                missing.append(f"{name}: {', '.join(model.left_out)}")
    rows = [_row(name, models) for name, models in found.items()]
    left_out = [f"Left out in a start: {'; '.join(missing)}."] if missing else []
    return "\n".join([HEAD, *rows, "", *_summary(found), *left_out])


def _row(name: str, models: Sequence[Model]) -> str:
    peers = " or ".join(dict.fromkeys(model.peer.removeprefix("torch.compile, ") for model in models))
    rates = [
        _range([model.ways[EAGER].rate for model in models if EAGER in model.ways], _rate),
        f"{_range([model.ways[model.peer].rate for model in models], _rate)} ({peers})",
        _range([model.ways[model.own].rate for model in models], _rate),
    ]
    ratios = [_range([model.ratio for model in models], _ratio), _range([model.memory for model in models], _ratio)]
    return f"| {' | '.join([name, str(len(models)), *rates, *ratios])} |"


def _summary(found: Mapping[str, Sequence[Model]]) -> list[str]:
    if not found:
        return ["No model was compared."]
    ratios = {name: statistics.median(model.ratio for model in models) for name, models in found.items()}
    memory = {name: max(model.memory for model in models) for name, models in found.items()}
    large = [ratios[name] for name, models in found.items() if any(model.is_large for model in models)]
    worst, most = min(ratios, key=ratios.__getitem__), max(memory, key=memory.__getitem__)
    lines = [
        f"{len(ratios)} models: geometric mean {geometric_mean(ratios.values()):.2f}, lowest {ratios[worst]:.2f} "
        f"({worst}); most peak memory {memory[most]:.2f} ({most})."
    ]
    if large:
        mean = geometric_mean(large)
        lines.append(f"{len(large)} models whose eager step takes more than 20 ms: geometric mean {mean:.2f}.")
    return lines


def _range(values: Sequence[float], written: Callable[[float], str]) -> str:
    """The least and the largest value, or only one if they read the same."""
    return " to ".join(dict.fromkeys(map(written, (min(values), max(values))))) if values else "–"


def _rate(value: float) -> str:
    return f"{value:,.1f}"


def _ratio(value: float) -> str:
    return f"{value:.2f}"


if __name__ == "__main__":
    main()
