"""Compiles a graph, and leaves out those of our changes that fail."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.fx import GraphModule

from pilotage.compiler.changes import ChangeFailed, Changes
from pilotage.compiler.failures import described
from pilotage.compiler.inductor import compile_graph
from pilotage.compiler.wrapper import NotSelfContained


@dataclass(frozen=True, slots=True)
class Compiled:
    """How a graph was compiled."""

    made: tuple[str, ...]
    """Our changes that had an effect, by name."""

    dropped: tuple[str, ...] = ()
    """A line for each change, or for all of them, that was left out because of an error."""


def compile_without_failing_changes(
    graph: GraphModule,
    arguments: Sequence[Tensor],
    folder: Path,
    device: torch.device,
    without: Collection[str] = (),
) -> Compiled:
    """Compile a graph; after an error, without each of our changes on its own, then without all of them.

    The last attempt also leaves out optimizations of Inductor. Raises the error without our changes: Inductor's own.
    """
    excluded = frozenset(without)
    dropped: list[str] = []
    while True:
        changes = Changes(excluded)
        try:
            _attempt(graph, arguments, folder, device, changes)
            return Compiled(tuple(changes.made), tuple(dropped))
        except ChangeFailed as failure:
            dropped.append(f"The change {failure.name!r} is left out: {described(failure.__cause__ or failure)}")
            excluded |= {failure.name}
        except (torch.OutOfMemoryError, NotSelfContained):
            raise
        except Exception as error:
            if not changes.made:
                raise
            compiled = _first_that_works(graph, arguments, folder, device, excluded, changes.made, error)
            return Compiled(compiled.made, (*dropped, *compiled.dropped))


def _first_that_works(
    graph: GraphModule,
    arguments: Sequence[Tensor],
    folder: Path,
    device: torch.device,
    excluded: frozenset[str],
    suspects: Sequence[str],
    error: Exception,
) -> Compiled:
    """Compile without each suspect on its own, then without all of them, then cautiously."""
    own = error
    for what, changes in _retries(excluded, suspects):
        try:
            _attempt(graph, arguments, folder, device, changes)
        except torch.OutOfMemoryError:
            raise
        except Exception as latest:
            if not changes.is_cautious:
                own = latest
        else:
            return Compiled(tuple(changes.made), (f"{what} left out: {described(error)}",))
    raise own


def _retries(excluded: frozenset[str], suspects: Sequence[str]) -> Iterator[tuple[str, Changes]]:
    """What to leave out, in words, and the changes that remain."""
    for name in suspects:
        yield f"The change {name!r} is", Changes(excluded | {name})
    names = ", ".join(suspects)
    if len(suspects) > 1:
        yield f"The changes {names} are", Changes(excluded | {*suspects})
    yield (
        f"The changes {names} and some optimizations of Inductor are",
        Changes(excluded | {*suspects}, is_cautious=True),
    )


def _attempt(
    graph: GraphModule, arguments: Sequence[Tensor], folder: Path, device: torch.device, changes: Changes
) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    compile_graph(graph, arguments, folder, device, changes)
