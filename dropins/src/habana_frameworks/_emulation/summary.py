"""A summary of the graphs that lazy mode would have run on the card, line by line of the program."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from habana_frameworks._emulation.library import Graph
from pilotage.engine import logger

_FILE = "PILOTAGE_HPU_SUMMARY"
_LINES_SHOWN = 10
_TINY = 3
"""Average number of operations below which starting a graph takes longer than running it."""
_OFTEN = 10


class Ending(StrEnum):
    """What ended a graph."""

    MARK = "mark_step"
    CALL = "a call that marks the step itself"
    READING = "a value was read"
    EXIT = "the program ended"


@dataclass(kw_only=True)
class Line:
    """The graphs that ended at one line of the program."""

    ending: Ending
    graphs: int = 0
    """Graphs with at least one operation."""
    operations: int = 0
    cache_hits: int = 0
    """Graphs with the same operations and shapes as an earlier one."""
    compilations: int = 0
    recompilations_by_shape: int = 0
    """Compilations of the same operations for new shapes."""
    idle_marks: int = 0
    """Calls of mark_step with nothing to run."""

    @property
    def is_excessive(self) -> bool:
        """Whether mark_step is called here without work, or often with very little work."""
        is_tiny = self.graphs >= _OFTEN and self.operations < _TINY * self.graphs
        return self.ending is Ending.MARK and (self.idle_marks > 0 or is_tiny)


@dataclass
class Summary:
    """All graphs of a process."""

    lines: dict[str, Line] = field(default_factory=dict)
    unmarked_updates: Counter[str] = field(default_factory=Counter)
    """Updates, by line, without a mark since the previous update."""
    once_marked_updates: Counter[str] = field(default_factory=Counter)
    """Updates, by line, with one mark since the previous update; the vendor recommends two."""
    _seen: set[tuple[int, int]] = field(default_factory=set)
    _structures: set[int] = field(default_factory=set)

    def count(self, graph: Graph, ending: Ending, line: str) -> bool:
        """Count a graph that ended at a line, and say whether the card would have compiled it."""
        if graph.operations == 0 and ending is not Ending.MARK:
            return False
        kept = self.lines.setdefault(line, Line(ending=ending))
        if graph.operations == 0:
            kept.idle_marks += 1
            return False
        kept.graphs += 1
        kept.operations += graph.operations
        if (graph.structure, graph.shapes) in self._seen:
            kept.cache_hits += 1
            return False
        kept.compilations += 1
        kept.recompilations_by_shape += graph.structure in self._structures
        self._seen.add((graph.structure, graph.shapes))
        self._structures.add(graph.structure)
        return True

    def count_missing(self, line: str, marks: int) -> None:
        """Count an update with fewer than two marks since the previous one."""
        (self.once_marked_updates if marks else self.unmarked_updates)[line] += 1

    @property
    def totals(self) -> dict[str, int]:
        """The figures of all lines together."""
        names = ("graphs", "operations", "cache_hits", "compilations", "recompilations_by_shape", "idle_marks")
        totals = {name: sum(getattr(line, name) for line in self.lines.values()) for name in names}
        read = sum(line.graphs for line in self.lines.values() if line.ending is Ending.READING)
        return {**totals, "cut_by_reading": read}

    def as_data(self) -> dict[str, Any]:
        """The whole summary for JSON."""
        return {
            **self.totals,
            "lines": {name: asdict(line) for name, line in self.lines.items()},
            "unmarked_updates": dict(self.unmarked_updates),
            "once_marked_updates": dict(self.once_marked_updates),
            "excessive_marks": [name for name, line in self.lines.items() if line.is_excessive],
        }


def report(summary: Summary) -> None:
    """Log the summary, and write it as JSON to the file that PILOTAGE_HPU_SUMMARY names."""
    for text in texts(summary) if summary.lines else ():
        logger.info(text)
    if path := os.environ.get(_FILE):
        Path(path).write_text(json.dumps(summary.as_data(), indent=2) + "\n")


def texts(summary: Summary) -> list[str]:
    """The summary as lines of text."""
    totals = summary.totals
    average = totals["operations"] / max(totals["graphs"], 1)
    lines = [
        f"Lazy mode would have run {totals['graphs']} graphs of {average:.0f} operations on average: "
        f"{totals['compilations']} compiled ({totals['recompilations_by_shape']} of them for new shapes), "
        f"{totals['cache_hits']} from the cache, {totals['cut_by_reading']} cut by reading a value, "
        f"{totals['idle_marks']} idle marks."
    ]
    busiest = sorted(summary.lines.items(), key=lambda each: -each[1].operations)
    lines += [f"  {name} ({line.ending.value}): {_figures(line)}" for name, line in busiest[:_LINES_SHOWN]]
    if len(busiest) > _LINES_SHOWN:
        lines.append(f"  and {len(busiest) - _LINES_SHOWN} more lines; set {_FILE}=file.json to get all of them.")
    lines += [
        f"Missing mark_step at {name}: {count} updates would be in one graph with the previous update."
        for name, count in summary.unmarked_updates.items()
    ]
    lines += [
        f"Missing mark_step at {name}: {count} updates with one mark_step; the vendor recommends one after backward() "
        "and one after step()."
        for name, count in summary.once_marked_updates.items()
    ]
    return lines + [
        f"Excessive mark_step at {name}: {line.idle_marks} calls with nothing to run, {line.graphs} graphs of "
        f"{line.operations / max(line.graphs, 1):.1f} operations. Starting such a graph takes longer than running it."
        for name, line in summary.lines.items()
        if line.is_excessive
    ]


def _figures(line: Line) -> str:
    average = line.operations / max(line.graphs, 1)
    return (
        f"{line.graphs} graphs of {average:.0f} operations, {line.compilations} compiled, "
        f"{line.recompilations_by_shape} of them for new shapes, {line.cache_hits} from the cache"
    )
