"""Compiles a graph, and leaves out those of our changes that fail."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Sequence
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
    """Compile a graph; after an error, without all of our changes, then with all but one of them.

    A change that raises an error itself is left out at once. If leaving out one does not help, all are left out.

    If the graph cannot be compiled without our changes either, optimizations of Inductor are left out as well. If that
    fails too, Inductor's own error is raised: the one without our changes.
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
            compiled = _without(graph, arguments, folder, device, excluded, changes.made, error)
            return Compiled(compiled.made, (*dropped, *compiled.dropped))


def _without(
    graph: GraphModule,
    arguments: Sequence[Tensor],
    folder: Path,
    device: torch.device,
    excluded: frozenset[str],
    suspects: Sequence[str],
    error: Exception,
) -> Compiled:
    """Compile without the suspects; if a single one of them causes the error, compile with the others."""
    names = ", ".join(suspects)
    which = f"The change {names!r} is" if len(suspects) == 1 else f"The changes {names} are"
    none = Changes(excluded | {*suspects})
    try:
        _attempt(graph, arguments, folder, device, none)
    except torch.OutOfMemoryError:
        raise
    except Exception as own:
        cautious = Changes(excluded | {*suspects}, is_cautious=True)
        which = f"The changes {names} and some optimizations of Inductor are"
        try:
            _attempt(graph, arguments, folder, device, cautious)
        except torch.OutOfMemoryError:
            raise
        except Exception:
            raise own from None
        return Compiled(tuple(cautious.made), (f"{which} left out: {described(error)}",))
    aside = folder.with_name(f"{folder.name}, in part")
    for name in suspects if len(suspects) > 1 else ():
        others = Changes(excluded | {name})
        try:
            _attempt(graph, arguments, aside, device, others)
        except torch.OutOfMemoryError:
            raise
        except Exception:
            continue
        shutil.rmtree(folder)
        aside.rename(folder)
        return Compiled(tuple(others.made), (f"The change {name!r} is left out: {described(error)}",))
    shutil.rmtree(aside, ignore_errors=True)
    return Compiled(tuple(none.made), (f"{which} left out: {described(error)}",))


def _attempt(
    graph: GraphModule, arguments: Sequence[Tensor], folder: Path, device: torch.device, changes: Changes
) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    compile_graph(graph, arguments, folder, device, changes)
