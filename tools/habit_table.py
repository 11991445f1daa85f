"""Write docs/lab-notes/habits.md from measured times: python -m tools.habit_table [output/benchmarks.json].

Measure first: make bench DEVICE=cpu ARGS='--only habits'.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "lab-notes" / "habits.md"
QUIET = 0.1
"""Cores that other programs may use on a machine that counts as idle."""

NARROW = "\u00a0"
"""A space at which no line ends."""

PAGE_TEXT = """\
# Ordinary scripts, timed

The scripts of [habits of PyTorch scripts](../habits.md), each as plain PyTorch, with `torch.compile` and with
`pilotage.training`.

{machine} {others}

- The figures are for one epoch: the median of {rounds} rounds, in which the three ways take turns. Behind a factor is
  its range over the rounds.
- A factor above 1 is faster than eager PyTorch in the same round. The fastest way of a row is set in bold.
- The models are tiny and the batches small, so the table shows what a step costs around its arithmetic, not the speed
  of kernels. [Faster in five lines](../faster.md) says when it pays.
- The program runs as a captured graph. These scripts take seconds; on a CPU, compiled code takes over after a minute
  of work.
- `torch.compile` is used as `torch.compile(model.forward)`, without options. It compiles forward and backward, and
  leaves the optimizer as it is.

**{summary}**

| script | eager | `torch.compile` | Pilotage |
|---|--:|--:|--:|
{rows}

{refusals}Left out are `early_stopping`, which ends by itself, `resume`, which has its loop in a function, and
`two_networks`, which has no single model to compile. `make bench DEVICE=cpu ARGS='--only habits'` measures, and
`python -m tools.habit_table` writes this page.
"""


def main() -> None:
    """Write the page."""
    results = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "output" / "benchmarks.json"
    PAGE.write_text(page(json.loads(results.read_text())))
    print(PAGE)


def page(results: Mapping[str, Any]) -> str:
    """The page for the results of the benchmark ``habits``."""
    (details,) = (table["details"] for table in results["tables"] if "scripts" in table["details"])
    scripts = details["scripts"]
    return PAGE_TEXT.format(
        machine=_machine(results["machine"], details["threads"]),
        others=_others(details["other_cores"], results["machine"]["cores"]),
        rounds=len(scripts[0]["milliseconds"]["eager"]),
        summary=_summary(scripts),
        rows="\n".join(map(_row, scripts)),
        refusals=_refusals(scripts),
    )


def _machine(machine: Mapping[str, Any], threads: int) -> str:
    used = "one thread" if threads == 1 else f"{threads} threads"
    return (
        f"{machine['device']}, {machine['cores']} cores, {used}, torch {machine['torch']}, Python {machine['python']}."
    )


def _others(cores: float, present: int) -> str:
    if cores <= QUIET:
        return "Nothing else ran at the same time."
    return (
        f"**Other programs used {cores:.1f} of the {present} cores meanwhile**: the milliseconds are too large, and "
        "the factors, which compare neighbours in time, are less exact than on an idle machine."
    )


def _summary(scripts: Sequence[Mapping[str, Any]]) -> str:
    medians = [{way: statistics.median(times) for way, times in each["milliseconds"].items()} for each in scripts]
    than_eager = sum(each["pilotage"] < each["eager"] for each in medians)
    fastest = sum(each["pilotage"] == min(each.values()) for each in medians)
    factors = sorted(each["eager"] / each["pilotage"] for each in medians)
    return (
        f"Of {len(scripts)} scripts, Pilotage is faster than eager PyTorch in {than_eager} and the fastest of the "
        f"three in {fastest}; the median of its factors is {statistics.median(factors):.2f}, from {factors[0]:.2f} to "
        f"{factors[-1]:.2f}."
    )


def _row(script: Mapping[str, Any]) -> str:
    times: Mapping[str, Sequence[float]] = script["milliseconds"]
    best = min(times, key=lambda way: statistics.median(times[way]))
    cells = [f"{statistics.median(times['eager']):.2f} ms"]
    for way in ("torch.compile", "pilotage"):
        if way not in times:
            cells.append("refuses")
            continue
        factors = [eager / own for eager, own in zip(times["eager"], times[way], strict=True)]
        low, high = min(factors), max(factors)
        found = f"{statistics.median(factors):.2f} × ({low:.2f} to {high:.2f})"
        cells.append("compiled nothing" if way == "torch.compile" and not script["compiled"] else found)
    marked = [
        f"**{cell}**" if way == best and cell != "compiled nothing" else cell
        for way, cell in zip(("eager", "torch.compile", "pilotage"), cells, strict=True)
    ]
    # A figure that breaks into two lines is hard to read.
    figures = " | ".join(cell.replace(" ", NARROW) for cell in marked)
    return f"| {script['about'].rstrip('.')} (`{script['habit']}`) | {figures} |"


def _refusals(scripts: Sequence[Mapping[str, Any]]) -> str:
    """What torch.compile says where it refuses a script."""
    said = [f"`{each['habit']}`: {each['refused']}" for each in scripts if each.get("refused")]
    return f"What `torch.compile` says where it refuses: {'; '.join(said)}.\n\n" if said else ""


if __name__ == "__main__":
    main()
