"""Run `pilotage cache`: list, check or clear."""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from collections.abc import Sequence

from pilotage.cache.directories import cache_directories
from pilotage.cache.limits import Limits
from pilotage.cli.cache import records
from pilotage.cli.cache.clearing import Removal, Selection, clear, select
from pilotage.cli.cache.contents import CacheContents, read_contents
from pilotage.cli.cache.screen import screen, short
from pilotage.cli.formatting import format_size
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
        # The reader closed the pipe; without this, Python would report it again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status


def _show(arguments: Namespace) -> int:
    verify = arguments.action == "check"
    limits, caches = Limits.from_environment(), _read_contents(arguments, verify=verify)
    if arguments.json:
        print(records.as_json(caches, limits))
    else:
        drawing, width = display.terminal_drawing(), display.terminal_width()
        display.show(screen(caches, limits, drawing, width, now=time.time(), verified=verify))
    return 1 if verify and any(cache.is_wrong for cache in caches) else 0


def _clear(arguments: Namespace) -> int:
    selection = Selection(names=tuple(arguments.names), everything=arguments.all, older_than=arguments.older_than)
    limits, now = Limits.from_environment(), time.time()
    # Damaged entries are removed too, so read every file.
    caches = _read_contents(arguments, verify=not selection.names)
    items = select(caches, selection, limits, now)
    if arguments.dry_run:
        removals = [Removal(item=item, freed=item.size, is_gone=True) for item in items]
    else:
        removals = clear(caches, items, limits, now)
    if arguments.json:
        print(records.removals_as_json(removals, dry_run=arguments.dry_run))
    else:
        display.show(_report(removals, caches, dry_run=arguments.dry_run))
    problems = any(cache.problem is not None for cache in caches)
    return 1 if problems or not all(removal.is_gone for removal in removals) else 0


def _read_contents(arguments: Namespace, *, verify: bool) -> list[CacheContents]:
    directory = arguments.directory
    if directory is not None and not directory.expanduser().is_dir():
        raise OptionError(f"No such directory: {directory}.")
    return read_contents(cache_directories(directory), verify=verify)


def _report(removals: Sequence[Removal], caches: Sequence[CacheContents], *, dry_run: bool) -> list[Line]:
    verb = "would remove" if dry_run else "removed"
    lines: list[Line] = [[Cell(cache.problem, "foreign")] for cache in caches if cache.problem is not None]
    for removal in removals:
        item = removal.item
        what = " ".join(part for part in (item.about.get("name", ""), item.about.get("kind", "")) if part)
        lines.append(
            [
                Cell(f"{verb if removal.is_gone else 'kept':<8} "),
                Cell(f"{short(item):<13} ", "id"),
                Cell(f"{format_size(item.size):>9}  "),
                Cell(item.state.value, item.state.value),
                Cell(
                    f"  {what}" if removal.is_gone else "  in use by a running program, or owned by another user",
                    "note",
                ),
            ]
        )
    gone = [removal for removal in removals if removal.is_gone]
    kept = sum(len(cache.items) for cache in caches) - len(gone)
    freed = f"{format_size(sum(removal.freed for removal in gone))} {'would be freed' if dry_run else 'freed'}"
    remaining = f"; {pluralized(kept, 'item')} kept (--all removes everything that is not in use)" if kept else ""
    return [*lines, [Cell(f"{freed}{remaining}.", "title")]]
