"""Programs as plain data and a table of tensors."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from pilotage.errors import ProgramFileError
from pilotage.optim.families import RULES
from pilotage.optim.own_step.rule import OwnStepRule
from pilotage.optim.rule import Group, OptimizerPlan, UpdateRule
from pilotage.program.layout import Section, StateLayout
from pilotage.program.program import Action, Computation, Program
from pilotage.program.structure import count_tensors
from pilotage.storage.dtypes import dtype_name
from pilotage.storage.graph_text import graph_from_data, graph_to_data
from pilotage.storage.layout_text import (
    layout_from_data,
    layout_to_data,
    names_among,
    spec_from_data,
    spec_to_data,
)
from pilotage.storage.permission import UNTRUSTED, Permission
from pilotage.storage.plain_data import (
    array,
    dtype,
    flag,
    identifier,
    integer,
    invalid_value,
    number_from_text,
    positions,
    table,
    text,
    texts,
    well_formed,
)
from pilotage.storage.structure_text import structure_from_data, structure_to_data

_STORED_RULES: Mapping[str, type[UpdateRule]] = {**RULES, OwnStepRule.__name__: OwnStepRule}
"""Every update rule, by the name that stored programs give it."""


def program_to_data(program: Program) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """A captured program as plain data, and the constant tensors of its graphs."""
    computations, constants = {}, {}
    for action, computation in program.computations.items():
        if computation.graph is None:
            raise ProgramFileError(
                "A program of the eager tier consists of Python code and cannot be written to a file."
            )
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
        "layout": layout_to_data(program.layout),
        "plan": None if program.plan is None else _plan_to_data(program.plan),
        "computations": computations,
        "arguments": structure_to_data(program.arguments),
        "inputs": [spec_to_data(specification) for specification in program.inputs],
        "outputs": None if program.outputs is None else structure_to_data(program.outputs),
        "constant_outputs": program.constant_outputs,
        "anchors": program.anchors,
        "output_ranks": program.output_ranks,
        "watched_operations": program.watched_operations,
        "written_inputs": program.written_inputs,
        "written_buffers": program.written_buffers,
        "draws_random_numbers": program.draws_random_numbers,
        "checks_loss": program.checks_loss,
        "autocast": None if program.autocast is None else dtype_name(program.autocast),
    }
    return data, constants


def program_from_data(
    data: dict[str, Any], constants: Mapping[str, Tensor], permission: Permission = UNTRUSTED
) -> Program:
    """Restore a program from plain data; raises if the data is invalid or calls an operation that is not allowed.

    `check_program` checks whether the parts fit together, which takes longer.
    """
    with well_formed("The file"):
        return _program_from_data(table(data, "a program"), constants, permission)


def _program_from_data(data: dict[str, Any], constants: Mapping[str, Tensor], permission: Permission) -> Program:
    inputs = tuple(spec_from_data(spec) for spec in array(data["inputs"], "the inputs"))
    outputs = structure_from_data(data["outputs"], trusted=permission.trusted)
    anchors = texts(data.get("anchors", ()), "the anchors")
    count = count_tensors(outputs) + len(anchors)
    layout = layout_from_data(table(data["layout"], "the layout"))
    return Program(
        layout=layout,
        plan=None
        if data["plan"] is None
        else _plan_from_data(table(data["plan"], "the optimizer"), layout, permission),
        computations={
            Action(name): _computation_from_data(name, table(entry, "a computation"), constants, permission)
            for name, entry in table(data["computations"], "the computations").items()
        },
        arguments=structure_from_data(data["arguments"], trusted=permission.trusted),
        inputs=inputs,
        outputs=outputs,
        constant_outputs=positions(data["constant_outputs"], "a constant output", count),
        anchors=anchors,
        output_ranks=tuple(integer(rank, "a rank", 0, 64) for rank in array(data.get("output_ranks", ()), "the ranks")),
        watched_operations=texts(data.get("watched_operations", ()), "the watched operations"),
        written_inputs=positions(data["written_inputs"], "a written input", len(inputs)),
        written_buffers=names_among(layout.buffers, data["written_buffers"], "a written buffer"),
        draws_random_numbers=flag(data["draws_random_numbers"], "draws_random_numbers"),
        checks_loss=flag(data["checks_loss"], "checks_loss"),
        autocast=None if data["autocast"] is None else dtype(data["autocast"]),
    )


def _computation_from_data(
    action: str, entry: dict[str, Any], constants: Mapping[str, Tensor], permission: Permission
) -> Computation:
    names = texts(entry["constants"], "the constants of a computation")
    return Computation(
        sections=tuple(Section(section) for section in array(entry["sections"], "the sections", len(Section))),
        graph=graph_from_data(entry["nodes"], {name: constants[f"{action}/{name}"] for name in names}, permission),
        whole=flag(entry["whole"], "whole"),
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
        "max_gradient_value": repr(plan.max_gradient_value),
        "accumulation_type": dtype_name(plan.accumulation_type),
        "automatic_loss_scaling": plan.automatic_loss_scaling,
        "stochastic_rounding": plan.stochastic_rounding,
        "constants": sorted(plan.constants),
    }


def _plan_from_data(data: dict[str, Any], layout: StateLayout, permission: Permission) -> OptimizerPlan:
    groups = tuple(_group_from_data(table(group, "a group"), layout) for group in array(data["groups"], "the groups"))
    if not permission.trusted and any(isinstance(group.rule, OwnStepRule) for group in groups):
        raise ProgramFileError("The program trains with an optimizer's own step(), which a file cannot contain.")
    return OptimizerPlan(
        groups=groups,
        loss_scaling=number_from_text(data["loss_scaling"], "the loss scaling"),
        max_gradient_norm=number_from_text(data["max_gradient_norm"], "the maximum gradient norm"),
        max_gradient_value=number_from_text(data.get("max_gradient_value", "inf"), "the maximum gradient value"),
        accumulation_type=dtype(data["accumulation_type"]),
        automatic_loss_scaling=flag(data["automatic_loss_scaling"], "automatic_loss_scaling"),
        stochastic_rounding=flag(data["stochastic_rounding"], "stochastic_rounding"),
        constants=frozenset(texts(data["constants"], "the constants of the optimizer")),
    )


def _group_from_data(data: dict[str, Any], layout: StateLayout) -> Group:
    values = table(data["values"], "the values of a group")
    return Group(
        rule=_rule_from_data(table(data["rule"], "an update rule")),
        parameters=names_among(layout.parameters, data["parameters"], "a parameter of a group"),
        values={identifier(name, "a value"): number_from_text(value, name) for name, value in values.items()},
        constants=frozenset(texts(data["constants"], "the constants of a group")),
    )


def _rule_to_data(rule: UpdateRule) -> dict[str, Any]:
    name = type(rule).__name__
    if _STORED_RULES.get(name) is not type(rule):
        raise ProgramFileError(
            f"The update rule {name} is not in FAMILIES of pilotage.optim.families: the program could not be loaded."
        )
    fields = {field.name: getattr(rule, field.name) for field in dataclasses.fields(rule) if field.compare}  # type: ignore[arg-type]
    return {
        "name": name,
        "choices": {k: {"dtype": dtype_name(v)} if isinstance(v, torch.dtype) else v for k, v in fields.items()},
    }


def _rule_from_data(data: dict[str, Any]) -> UpdateRule:
    name = text(data["name"], "an update rule")
    if name not in _STORED_RULES:
        raise ProgramFileError(f"The program uses the unknown update rule {name!r}.")
    given = table(data["choices"], "the choices of an update rule")
    kind: Callable[..., UpdateRule] = _STORED_RULES[name]
    known = {field.name for field in dataclasses.fields(_STORED_RULES[name]) if field.compare}  # type: ignore[arg-type]
    if not given.keys() <= known:
        raise invalid_value(
            "a choice of an update rule", sorted(given.keys() - known), f"only {', '.join(sorted(known))}"
        )
    return kind(**{key: _choice_from_data(value) for key, value in given.items()})


def _choice_from_data(value: Any) -> Any:
    if isinstance(value, dict):
        return dtype(value["dtype"])
    if value is not None and type(value) not in (bool, int, float, str):
        raise invalid_value("a choice of an update rule", value, "a plain value or a data type")
    return value
