"""Whole programs as plain data and a table of tensors."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from pilotage.errors import ProgramFileError
from pilotage.optim.adam import AdamRule
from pilotage.optim.lamb import LambRule
from pilotage.optim.rmsprop import RmspropRule
from pilotage.optim.rule import Group, OptimizerPlan, UpdateRule
from pilotage.optim.sgd import SgdRule
from pilotage.program.graph_text import graph_from_data, graph_to_data
from pilotage.program.layout import Counter, Groups, Section, Slot, StateLayout, VariableValue
from pilotage.program.program import Action, Computation, Program
from pilotage.program.specification import TensorSpec
from pilotage.program.structure_text import structure_from_data, structure_to_data

_RULES: Mapping[str, type[Any]] = {rule.__name__: rule for rule in (AdamRule, LambRule, RmspropRule, SgdRule)}


def program_to_data(program: Program) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """A captured program as plain data, and the tensors that are built into its graphs."""
    computations, constants = {}, {}
    for action, computation in program.computations.items():
        if computation.graph is None:
            raise ProgramFileError("A program of the eager tier is Python, and cannot be written to a file.")
        nodes, tensors = graph_to_data(computation.graph)
        sections = [section.value for section in computation.sections]
        computations[action.value] = {
            "sections": sections,
            "whole": computation.whole,
            "nodes": nodes,
            "constants": list(tensors),
        }
        constants.update({f"{action.value}/{name}": tensor for name, tensor in tensors.items()})
    data = {
        "layout": _layout_to_data(program.layout),
        "plan": None if program.plan is None else _plan_to_data(program.plan),
        "computations": computations,
        "arguments": structure_to_data(program.arguments),
        "inputs": [_spec_to_data(specification) for specification in program.inputs],
        "outputs": None if program.outputs is None else structure_to_data(program.outputs),
        "constant_outputs": program.constant_outputs,
        "anchors": program.anchors,
        "output_ranks": program.output_ranks,
        "watched_operations": program.watched_operations,
        "written_inputs": program.written_inputs,
        "written_buffers": program.written_buffers,
        "draws_random_numbers": program.draws_random_numbers,
        "checks_loss": program.checks_loss,
        "autocast": None if program.autocast is None else _dtype_to_data(program.autocast),
    }
    return data, constants


def program_from_data(data: dict[str, Any], constants: Mapping[str, Tensor]) -> Program:
    """The program that was written as this data."""
    computations = {}
    for name, entry in data["computations"].items():
        tensors = {constant: constants[f"{name}/{constant}"] for constant in entry["constants"]}
        sections = tuple(Section(section) for section in entry["sections"])
        computations[Action(name)] = Computation(
            sections=sections, graph=graph_from_data(entry["nodes"], tensors), whole=entry["whole"]
        )
    return Program(
        layout=_layout_from_data(data["layout"]),
        plan=None if data["plan"] is None else _plan_from_data(data["plan"]),
        computations=computations,
        arguments=structure_from_data(data["arguments"]),
        inputs=tuple(map(_spec_from_data, data["inputs"])),
        outputs=structure_from_data(data["outputs"]),
        constant_outputs=tuple(data["constant_outputs"]),
        anchors=tuple(data.get("anchors", ())),
        output_ranks=tuple(data.get("output_ranks", ())),
        watched_operations=tuple(data.get("watched_operations", ())),
        written_inputs=tuple(data["written_inputs"]),
        written_buffers=tuple(data["written_buffers"]),
        draws_random_numbers=data["draws_random_numbers"],
        checks_loss=data["checks_loss"],
        autocast=None if data["autocast"] is None else _dtype_from_data(data["autocast"]),
    )


def _spec_to_data(specification: TensorSpec) -> list[Any]:
    return [specification.shape, specification.stride, _dtype_to_data(specification.dtype)]


def _spec_from_data(data: list[Any]) -> TensorSpec:
    shape, stride, dtype = data
    return TensorSpec(tuple(shape), tuple(stride), _dtype_from_data(dtype))


def _layout_to_data(layout: StateLayout) -> dict[str, Any]:
    return {
        "parameters": [[name, _spec_to_data(spec)] for name, spec in layout.parameters.items()],
        "buffers": [[name, _spec_to_data(spec)] for name, spec in layout.buffers.items()],
        "trained": layout.trained,
        "slots": [[slot.name, slot.parameter, _spec_to_data(spec)] for slot, spec in layout.slots.items()],
        "values": [[value.group, value.name] for value in layout.values],
        "accumulation_type": _dtype_to_data(layout.accumulation_type),
        "counters": [counter.value for counter in layout.counters],
        "groups": {name: groups.of_replica for name, groups in layout.groups.items()},
        "slots_on_host": layout.slots_on_host,
    }


def _layout_from_data(data: dict[str, Any]) -> StateLayout:
    return StateLayout(
        parameters={name: _spec_from_data(spec) for name, spec in data["parameters"]},
        buffers={name: _spec_from_data(spec) for name, spec in data["buffers"]},
        trained=tuple(data["trained"]),
        slots={Slot(name, parameter): _spec_from_data(spec) for name, parameter, spec in data["slots"]},
        values=tuple(VariableValue(group, name) for group, name in data["values"]),
        accumulation_type=_dtype_from_data(data["accumulation_type"]),
        counters=tuple(Counter(counter) for counter in data["counters"]),
        groups={name: Groups(tuple(of_replica)) for name, of_replica in data["groups"].items()},
        slots_on_host=data.get("slots_on_host"),
    )


def _plan_to_data(plan: OptimizerPlan) -> dict[str, Any]:
    return {
        "groups": [
            {
                "rule": _rule_to_data(group.rule),
                "parameters": group.parameters,
                "values": {name: repr(value) for name, value in group.values.items()},
                "constants": sorted(group.constants),
            }
            for group in plan.groups
        ],
        "loss_scaling": repr(plan.loss_scaling),
        "max_gradient_norm": repr(plan.max_gradient_norm),
        "accumulation_type": _dtype_to_data(plan.accumulation_type),
        "automatic_loss_scaling": plan.automatic_loss_scaling,
        "stochastic_rounding": plan.stochastic_rounding,
        "constants": sorted(plan.constants),
    }


def _plan_from_data(data: dict[str, Any]) -> OptimizerPlan:
    return OptimizerPlan(
        groups=tuple(
            Group(
                rule=_rule_from_data(group["rule"]),
                parameters=tuple(group["parameters"]),
                values={name: float(value) for name, value in group["values"].items()},
                constants=frozenset(group["constants"]),
            )
            for group in data["groups"]
        ),
        loss_scaling=float(data["loss_scaling"]),
        max_gradient_norm=float(data["max_gradient_norm"]),
        accumulation_type=_dtype_from_data(data["accumulation_type"]),
        automatic_loss_scaling=data["automatic_loss_scaling"],
        stochastic_rounding=data["stochastic_rounding"],
        constants=frozenset(data["constants"]),
    )


def _rule_to_data(rule: UpdateRule) -> dict[str, Any]:
    fields = {field.name: getattr(rule, field.name) for field in dataclasses.fields(rule)}  # type: ignore[arg-type]
    return {
        "name": type(rule).__name__,
        "choices": {k: {"dtype": _dtype_to_data(v)} if isinstance(v, torch.dtype) else v for k, v in fields.items()},
    }


def _rule_from_data(data: dict[str, Any]) -> UpdateRule:
    if data["name"] not in _RULES:
        raise ProgramFileError(f"The program trains by the unknown rule {data['name']!r}.")
    choices = {k: _dtype_from_data(v["dtype"]) if isinstance(v, dict) else v for k, v in data["choices"].items()}
    rule: UpdateRule = _RULES[data["name"]](**choices)
    return rule


def _dtype_to_data(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _dtype_from_data(name: str) -> torch.dtype:
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise ProgramFileError(f"The program holds the unknown data type {name!r}.")
    return dtype
