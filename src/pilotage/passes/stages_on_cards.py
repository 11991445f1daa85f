"""Cuts a program into its stages, each for its own card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from pilotage.passes.returned_loss_check import with_returned_loss_check
from pilotage.passes.stage_graphs import StageGraph
from pilotage.passes.stage_phases import stages_in
from pilotage.passes.stage_program import StageProgram, cut_program
from pilotage.passes.to_device import graph_to_device, to_device
from pilotage.program.program import Program


def stages_of(program: Program) -> int:
    """The number of stages of a program; 1 if it was not captured."""
    graph = next(iter(program.computations.values())).graph
    return 1 if graph is None else stages_in(graph.graph)


def cut_for_cards(program: Program, cards: Sequence[torch.device]) -> list[StageProgram]:
    """The stage program of each card, from a program that was captured for the first card and returns gradients."""
    late = with_returned_loss_check(program)
    return [_moved(cut_program(late, stage, len(cards), cards[0]), cards[0], card) for stage, card in enumerate(cards)]


def _moved(cut: StageProgram, source: torch.device, target: torch.device) -> StageProgram:
    if source == target:
        return cut
    backward = cut.graphs.backward
    graphs = replace(
        cut.graphs,
        forward=_graph_on(cut.graphs.forward, source, target),
        backward=None if backward is None else _graph_on(backward, source, target),
    )
    return replace(cut, program=to_device(cut.program, source, target), graphs=graphs)


def _graph_on(graph: StageGraph, source: torch.device, target: torch.device) -> StageGraph:
    return replace(graph, graph=graph_to_device(graph.graph, source, target))
