"""Gradient clipping in a step: the parameters, the limit and the conditions."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from pilotage.porting.analysis.code.flow import path_of
from pilotage.porting.analysis.code.origins import Origin, origins
from pilotage.porting.analysis.step import TrainingStep
from pilotage.porting.analysis.trained import Trained
from pilotage.porting.analysis.training_calls import CallKind
from pilotage.porting.project import Project

__all__ = ["Clip", "Condition", "clips_all", "clips_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Condition:
    """A condition around a call."""

    place: ast.If
    is_met: bool
    """Whether the call is in its body, not in its ``else``."""

    @property
    def test(self) -> ast.expr:
        """The tested expression."""
        return self.place.test


@dataclass(frozen=True, kw_only=True, slots=True)
class Clip:
    """One call that clips gradients."""

    call: ast.Call
    is_by_value: bool
    subject: ast.expr | None
    """The parameters whose gradients are clipped."""

    limit: ast.expr | None
    conditions: tuple[Condition, ...]
    """The conditions around it, the innermost first, without those of the step itself."""

    @property
    def tests(self) -> tuple[ast.expr, ...]:
        """The expressions that have to be true for it."""
        return tuple(each.test for each in self.conditions)

    @property
    def is_otherwise(self) -> bool:
        """Whether it is in an ``else``."""
        return any(not each.is_met for each in self.conditions)

    def keyword(self, name: str) -> ast.expr | None:
        """An argument that is given by name."""
        return next((each.value for each in self.call.keywords if each.arg == name), None)


def clips_of(step: TrainingStep) -> list[Clip]:
    """The clipping calls of a step in their order; equal calls in both branches of a condition count once."""
    found = [_clip(step, each.call) for each in step.calls if each.kind is CallKind.CLIP]
    if len(found) == 2 and ast.dump(found[0].call) == ast.dump(found[1].call):
        first, second = ([*each.conditions] for each in found)
        for branch in first:
            other = next((each for each in second if each.place is branch.place), None)
            if other is not None and other.is_met is not branch.is_met:
                left = [[each for each in own if each.place is not branch.place] for own in (first, second)]
                if _texts(left[0]) == _texts(left[1]):
                    return [replace(found[0], conditions=tuple(left[0]))]
    return found


def _texts(conditions: list[Condition]) -> list[tuple[str, bool]]:
    return [(ast.dump(each.test), each.is_met) for each in conditions]


def clips_all(project: Project, step: TrainingStep, clip: Clip, optimizers: tuple[Origin, ...]) -> bool:
    """Whether the clipped parameters are those that the optimizer trains, as far as the analysis can tell."""
    if clip.subject is None:
        return False
    subject = _listed(clip.subject)
    given = [_parameters(each) for each in optimizers]
    texts = {ast.dump(_listed(each)) for each in given}
    if texts == {ast.dump(subject)}:
        return True
    if ast.unparse(step.optimizer) in ast.unparse(subject):
        # optimizer.param_groups[0]["params"] has all of them if the optimizer has one group.
        groups = [one.node for each in optimizers for one in origins(project, each.source, _parameters(each))]
        has_groups = any(isinstance(each, ast.List | ast.ListComp) for each in groups)
        is_first = any(isinstance(each, ast.Constant) and each.value == 0 for each in ast.walk(subject))
        return not (has_groups and is_first)
    module = _module_of(subject)
    trained = Trained(project, step.source, step.optimizer)
    if module is not None:
        return trained.modules <= {each.node for each in origins(project, step.source, module)}
    made = {each.node for each in origins(project, step.source, subject)}
    return any(made & {one.node for one in origins(project, each.source, _parameters(each))} for each in optimizers)


def _parameters(optimizer: Origin) -> ast.expr:
    """The parameters that an optimizer was given; if they are not known, the call that makes it."""
    assert isinstance(optimizer.node, ast.Call)
    return optimizer.node.args[0] if optimizer.node.args else optimizer.node


def _clip(step: TrainingStep, call: ast.Call) -> Clip:
    is_by_value = ast.unparse(call.func).endswith("clip_grad_value_")
    name = "clip_value" if is_by_value else "max_norm"
    limit = next((each.value for each in call.keywords if each.arg == name), None)
    limit = limit if limit is not None else (call.args[1] if len(call.args) > 1 else None)
    subject = next((each.value for each in call.keywords if each.arg == "parameters"), None)
    subject = subject if subject is not None else (call.args[0] if call.args else None)
    conditions: list[Condition] = []
    inner: ast.AST = step.source.statement(call)
    own = {step.condition, step.accumulation.condition if step.accumulation is not None else None}
    for each in step.source.ancestors(inner):
        if each is step.loop or each is step.scope.node:
            break
        if isinstance(each, ast.If) and each not in own:
            conditions.append(Condition(place=each, is_met=not any(other is inner for other in each.orelse)))
        inner = each
    return Clip(call=call, is_by_value=is_by_value, subject=subject, limit=limit, conditions=tuple(conditions))


def _listed(node: ast.expr) -> ast.expr:
    """Parameters without ``list()``, ``filter()`` and a comprehension that only leaves out frozen ones."""
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            if node.func.id not in ("list", "tuple", "filter"):
                return node
            node = node.args[-1]
        elif isinstance(node, ast.ListComp | ast.GeneratorExp) and len(node.generators) == 1:
            (generator,) = node.generators
            is_same = path_of(node.elt) is not None and path_of(node.elt) == path_of(generator.target)
            if not is_same or not all("requires_grad" in ast.unparse(each) for each in generator.ifs):
                return node
            node = generator.iter
        else:
            return node


def _module_of(node: ast.AST) -> ast.expr | None:
    """The variable of a module in ``module.parameters()``; None for anything else, also a part of a module."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "parameters":
        return None
    module = node.func.value
    if isinstance(module, ast.Attribute) and module.attr == "module" and path_of(module) is None:
        module = module.value
    return module if path_of(module) is not None else None
