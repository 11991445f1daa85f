"""Cuts the program of one pipeline stage out of a whole program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.fx import Node

from pilotage.capture.steps import UpdateStep
from pilotage.capture.tracing import trace
from pilotage.errors import CaptureError, OptionError
from pilotage.passes.stage_graphs import StageGraphs, StepGraph, cut
from pilotage.passes.stage_phases import Phases, find_phases, stages_in
from pilotage.program.layout import Section, StateLayout
from pilotage.program.program import Action, Computation, Program
from pilotage.program.structure import count_tensors


@dataclass(frozen=True, kw_only=True)
class StageProgram:
    """The program of one stage."""

    program: Program
    """The program with only the state of this stage, and an update of that state."""

    graphs: StageGraphs
    outputs: tuple[int, ...]
    """The results of the step that go to the host."""

    flag: int | None
    """The result that says whether the loss is finite, if any."""

    state_stages: dict[str, int]
    """The stage of each parameter and buffer."""

    divisor: int
    """The divisor of pooled gradients at an update."""

    shared_parameters: tuple[str, ...]
    """Parameters that several stages use: the first of these owns them and sends them with each micro-batch."""


def cut_program(program: Program, stage: int, stages: int, device: torch.device) -> StageProgram:
    """The program of one stage, cut from a program that returns gradients after its outputs."""
    _refuse(program)
    action, computation = next(iter(program.computations.items()))
    graph = computation.graph
    if graph is None:
        raise OptionError(
            "The tier is 'eager', which has no graph to cut into stages. Use the tier 'graph', or run one process."
        )
    _check_number(stages_in(graph.graph), stages)
    names = _arguments(program.layout, computation.sections)
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    arguments = dict(zip(names, placeholders, strict=False))
    weights = {
        str(name): node for (kind, name), node in arguments.items() if kind in (Section.PARAMETERS, Section.BUFFERS)
    }
    everywhere = frozenset(placeholders) - {*weights.values()}
    phases = find_phases(graph.graph, stages, everywhere=everywhere, trains=program.trains)
    state_stages = {name: phases.of_node[node] for name, node in weights.items()}
    own = _own(program, {name for name, where in state_stages.items() if where == stage})
    outputs, gradients = _results(program, graph.graph.output_node())
    step = StepGraph(
        graph=graph,
        state=[arguments[key] for key in _arguments(own.layout, computation.sections)],
        inputs=placeholders[len(arguments) :],
        outputs=outputs,
        gradients=[(name, weights[name], node) for name, node in gradients.items()],
        everywhere=everywhere,
    )
    computations = {action: replace(computation, graph=None, function=None)}
    if program.trains:
        computations[Action.UPDATE] = _update(program.computations[Action.UPDATE], own.layout, device)
    flag = len(outputs) - 1 if computation.returns_loss_check else None
    return StageProgram(
        program=replace(own, computations=computations),
        graphs=cut(step, phases, stage),
        outputs=tuple(number for number in range(len(outputs)) if number != flag),
        flag=flag,
        state_stages=state_stages,
        divisor=max(_divisors(program).values(), default=1),
        shared_parameters=tuple(name for name in program.layout.parameters if _is_shared(weights[name], phases)),
    )


def _check_number(found: int, stages: int) -> None:
    if found != stages:
        raise OptionError(
            f"The model has {found} {'stage' if found == 1 else 'stages'}, but poprun was started with "
            f"--ipus-per-replica {stages}. Start it with --ipus-per-replica {found}, or divide the model into "
            f"{stages} stages with pilotage.enter_stage, or with the blocks of a drop-in."
        )


def _refuse(program: Program) -> None:
    """Raise for features that a pipeline of several processes does not support."""
    problems = []
    if program.plan is not None and program.plan.automatic_loss_scaling:
        problems.append("find the loss scale by itself (setAutomaticLossScaling)")
    if program.layout.replica_groups:
        problems.append("have several copies of a parameter (replicaGrouping)")
    if program.written_inputs:
        problems.append("write to the inputs of forward")
    if problems:
        raise CaptureError(f"A pipeline whose stages are separate processes cannot yet {' or '.join(problems)}.")


def _arguments(layout: StateLayout, sections: Iterable[Section]) -> list[tuple[Section, object]]:
    """The names of a step's state, in order."""
    return [(section, name) for section in sections for name in _names(layout, section)]


def _names(layout: StateLayout, section: Section) -> Iterable[object]:
    match section:
        case Section.BUFFERS:
            return layout.buffers
        case Section.COUNTERS:
            return layout.counters
        case Section.VALUES:
            return layout.values
        case _:
            return layout.owners(section)


def _own(program: Program, names: set[str]) -> Program:
    """The program with only the state of these names, and without gradients among its outputs."""
    assert program.outputs is not None
    layout, count = program.layout, count_tensors(program.outputs)
    own = replace(
        layout,
        parameters={name: spec for name, spec in layout.parameters.items() if name in names},
        buffers={name: spec for name, spec in layout.buffers.items() if name in names},
        trained=tuple(name for name in layout.trained if name in names),
        slots={slot: spec for slot, spec in layout.slots.items() if slot.parameter in names},
    )
    return replace(
        program,
        layout=own,
        written_buffers=tuple(name for name in program.written_buffers if name in own.buffers),
        constant_outputs=tuple(number for number in program.constant_outputs if number < count),
        output_ranks=(*program.output_ranks[:count], *program.output_ranks[count + len(program.gradients) :]),
    )


def _update(computation: Computation, layout: StateLayout, device: torch.device) -> Computation:
    """The update of one stage's weights, captured again."""
    step = computation.function
    assert isinstance(step, UpdateStep)
    groups = [
        replace(group, parameters=tuple(name for name in group.parameters if name in layout.trained))
        for group in step.plan.groups
    ]
    own = replace(step, plan=replace(step.plan, groups=tuple(groups)), layout=layout, clips=False)
    state = [spec for section in own.sections for spec in layout.section(section, whole=True)]
    return replace(computation, function=own, graph=trace(own, state, device, None).graph)


def _divisors(program: Program) -> Mapping[str, int]:
    update = program.computations[Action.UPDATE].function if program.trains else None
    return update.divisors if isinstance(update, UpdateStep) else {}


def _results(program: Program, output: Node) -> tuple[list[Node], dict[str, Node]]:
    """The results for the host, and the gradients, which are between the outputs and the anchors."""
    assert program.outputs is not None
    returned: Any = output.args[0]
    results, count = list(returned), count_tensors(program.outputs)
    gradients = dict(zip(program.gradients, results[count:], strict=False))
    return [*results[:count], *results[count + len(gradients) :]], gradients


def _is_shared(weight: Node, phases: Phases) -> bool:
    return len({phases.stage(phases.of_node[user]) for user in weight.users if user in phases.of_node}) > 1
