"""Doing what was asked for: list, check or clear."""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from collections.abc import Sequence

from pilotage.cache.limits import Limits
from pilotage.cache.places import places
from pilotage.cli.cache import records, words
from pilotage.cli.cache.clearing import Chosen, Removal, choose, clear
from pilotage.cli.cache.screen import screen, short
from pilotage.cli.cache.survey import Surveyed, survey
from pilotage.cli.monitor import display
from pilotage.cli.monitor.lines import Line
from pilotage.cli.monitor.table import Cell
from pilotage.errors import OptionError
from pilotage.monitoring.plurals import pluralized

__all__ = ["run"]


def run(arguments: Namespace) -> int:
    """Run one action; returns the exit status."""
    try:
        status = _clear(arguments) if arguments.action == "clear" else _show(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough; Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status


def _show(arguments: Namespace) -> int:
    verify = arguments.action == "check"
    limits, caches = Limits.chosen(), _surveyed(arguments, verify=verify)
    if arguments.json:
        print(records.as_json(caches, limits))
    else:
        drawing, width = display.terminal_drawing(), display.terminal_width()
        display.show(screen(caches, limits, drawing, width, now=time.time(), verified=verify))
    return 1 if verify and any(cache.is_wrong for cache in caches) else 0


def _clear(arguments: Namespace) -> int:
    chosen = Chosen(names=tuple(arguments.names), everything=arguments.all, older_than=arguments.older_than)
    limits, now = Limits.chosen(), time.time()
    # Damaged entries go as well, so every file is read.
    caches = _surveyed(arguments, verify=not chosen.names)
    items = choose(caches, chosen, limits, now)
    if arguments.dry_run:
        removals = [Removal(item=item, freed=item.size, is_gone=True) for item in items]
    else:
        removals = clear(caches, items, limits, now)
    if arguments.json:
        print(records.removals_as_json(removals, dry_run=arguments.dry_run))
    else:
        display.show(_told(removals, caches, dry_run=arguments.dry_run))
    problems = any(cache.problem is not None for cache in caches)
    return 1 if problems or not all(removal.is_gone for removal in removals) else 0


def _surveyed(arguments: Namespace, *, verify: bool) -> list[Surveyed]:
    directory = arguments.directory
    if directory is not None and not directory.expanduser().is_dir():
        raise OptionError(f"There is no directory {directory}.")
    return survey(places(directory), verify=verify)


def _told(removals: Sequence[Removal], caches: Sequence[Surveyed], *, dry_run: bool) -> list[Line]:
    verb = "would remove" if dry_run else "removed"
    lines: list[Line] = [[Cell(cache.problem, "foreign")] for cache in caches if cache.problem is not None]
    for removal in removals:
        item = removal.item
        what = " ".join(part for part in (item.about.get("name", ""), item.about.get("kind", "")) if part)
        lines.append(
            [
                Cell(f"{verb if removal.is_gone else 'kept':<8} "),
                Cell(f"{short(item):<13} ", "id"),
                Cell(f"{words.size(item.size):>9}  "),
                Cell(item.state.value, item.state.value),
                Cell(f"  {what}" if removal.is_gone else "  a running program uses it, or others own it", "note"),
            ]
        )
    gone = [removal for removal in removals if removal.is_gone]
    kept = sum(len(cache.items) for cache in caches) - len(gone)
    freed = f"{words.size(sum(removal.freed for removal in gone))} {'would be freed' if dry_run else 'freed'}"
    rest = f"; {pluralized(kept, 'item')} kept (--all removes everything that is not in use)" if kept else ""
    return [*lines, [Cell(f"{freed}{rest}.", "title")]]
