"""All stages of a program, each for the card that it is going to run on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from pilotage.passes.cutting import StageProgram, cut_program
from pilotage.passes.late_checks import with_late_checks
from pilotage.passes.moving import moved, moved_graph
from pilotage.passes.stage_part import Half
from pilotage.passes.stage_slots import stages_in
from pilotage.program.program import Program


def stages_of(program: Program) -> int:
    """How many stages a program has; one where it was not captured."""
    graph = next(iter(program.computations.values())).graph
    return 1 if graph is None else stages_in(graph.graph)


def cut_for_cards(program: Program, cards: Sequence[torch.device]) -> list[StageProgram]:
    """What each card runs of a program that was captured for the first of them, and returns its gradients."""
    late = with_late_checks(program)
    return [_moved(cut_program(late, stage, len(cards), cards[0]), cards[0], card) for stage, card in enumerate(cards)]


def _moved(cut: StageProgram, source: torch.device, target: torch.device) -> StageProgram:
    if source == target:
        return cut
    backward = cut.part.backward
    part = replace(
        cut.part,
        forward=_half(cut.part.forward, source, target),
        backward=None if backward is None else _half(backward, source, target),
    )
    return replace(cut, program=moved(cut.program, source, target), part=part)


def _half(half: Half, source: torch.device, target: torch.device) -> Half:
    return replace(half, graph=moved_graph(half.graph, source, target))
