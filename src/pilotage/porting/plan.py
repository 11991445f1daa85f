"""The plan for targets that run a training step as one call: steps, where wrapped models are made, loaders."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pilotage.porting.analysis.clips import clips_of
from pilotage.porting.analysis.code.flow import path_of, reads
from pilotage.porting.analysis.code.origins import Origin, origins
from pilotage.porting.analysis.evaluations import Evaluation, find_evaluations
from pilotage.porting.analysis.joint import Joint, joint_of
from pilotage.porting.analysis.kinds import torch_name
from pilotage.porting.analysis.lengths import drop_last_of, leaves_a_remainder
from pilotage.porting.analysis.loaders import Loader, find_loaders
from pilotage.porting.analysis.placing import Needs, Placing, Site
from pilotage.porting.analysis.refusal import Refused
from pilotage.porting.analysis.step import TrainingStep, changes_in
from pilotage.porting.analysis.steps import find_steps
from pilotage.porting.project import Project
from pilotage.porting.target import Target

__all__ = ["OPTIMIZER", "Plan", "PlannedEvaluation", "PlannedStep"]

OPTIMIZER = "(optimizer)"
"""The key of the optimizer among the expressions of a site."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PlannedStep:
    """A training step, the module that joins model and loss, and the wrapped model that replaces it."""

    step: TrainingStep
    joint: Joint
    needs: Needs
    name: str
    """The name of the wrapped model at the step."""

    class_name: str
    optimizers: tuple[Origin, ...]
    """The calls that make the optimizer."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PlannedEvaluation:
    """An evaluation, and the wrapped model that it uses."""

    evaluation: Evaluation
    name: str


class Plan:
    """The planned changes, independent of the target."""

    def __init__(self, project: Project, target: Target = Target.POPTORCH) -> None:
        self.project = project
        self.target = target
        found, self.refusals = find_steps(project)
        self.training = Placing(project)
        self.inference = Placing(project)
        self.steps: list[PlannedStep] = []
        for step in found:
            try:
                self.steps.append(self._planned(step))
            except Refused as refused:
                self.refusals.append(refused.refusal)
        self.evaluations: list[PlannedEvaluation] = []
        self._conditional: dict[TrainingStep, str] = {}
        kept = [each.step for each in self.steps]
        evaluations = find_evaluations(project, kept)
        self.loaders: list[Loader] = find_loaders(project, kept, evaluations)
        self._plan_evaluations([each for each in evaluations if self._is_convertible(each)])

    def site_of(self, planned: PlannedStep) -> list[Site]:
        """Where the wrapped model of a step is made."""
        return [site for site in self.training.sites if planned.needs in site.needs]

    def other_branch(self, step: TrainingStep) -> str | None:
        """The name of the wrapped model that runs when a conditional step is skipped."""
        return self._conditional.get(step)

    def _planned(self, step: TrainingStep) -> PlannedStep:
        joint = joint_of(self.project, step)
        optimizer = ast.unparse(step.optimizer)
        made = [
            each for each in origins(self.project, step.source, step.optimizer) if _is_optimizer(self.project, each)
        ]
        if not made:
            raise Refused(step.source, step.optimizer, "optimizer-not-found", optimizer)
        name, needs = self._placed(step, joint, optimizer)
        return PlannedStep(
            step=step,
            joint=joint,
            needs=needs,
            name=name,
            class_name=self._class_name(step),
            optimizers=tuple(made),
        )

    def _placed(self, step: TrainingStep, joint: Joint, optimizer: str) -> tuple[str, Needs]:
        """Plan where the wrapped model is made; limits on gradients can be written where the optimizer is made too."""
        counts = [] if step.accumulation is None else [step.accumulation.count]
        limits = [
            node for clip in clips_of(step) for node in (*([clip.limit] if clip.limit is not None else []), *clip.tests)
        ]
        attempts = (
            [[*counts, *limits], counts] if limits and self.target is not Target.PILOTAGE else [[*counts, *limits]]
        )
        for number, settings in enumerate(attempts, 1):
            known = {path: None for node in settings if not changes_in(step, node) for path in reads(node)}
            needs = Needs(
                source=step.source,
                scope=step.scope,
                anchor=step.anchor,
                paths=tuple({**dict.fromkeys(joint.dependencies), optimizer: None, **known}),
                name="training_model",
                optimizer=optimizer,
            )
            try:
                return self.training.place(needs), needs
            except Refused:
                if number == len(attempts):
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _class_name(self, step: TrainingStep) -> str:
        taken = {node.name for node in step.source.nodes if isinstance(node, ast.ClassDef)}
        taken |= {each.class_name for each in self.steps if each.step.source is step.source}
        name, number = "ModelWithLoss", 2
        while name in taken:
            name, number = f"ModelWithLoss{number}", number + 1
        return name

    def may_be_incomplete(self, evaluation: Evaluation) -> bool:
        """Whether a batch of an evaluation may be too small for its program; `pilotage.inference` takes any size."""
        if self.target is Target.PILOTAGE:
            return False
        loaders = [each for each in self.loaders if evaluation in each.evaluations]
        return not loaders or any(
            drop_last_of(self.project, each)[1] is not True and leaves_a_remainder(self.project, each) is not False
            for each in loaders
        )

    def _is_convertible(self, evaluation: Evaluation) -> bool:
        """Whether incomplete batches can be distinguished from others; if not, the module itself evaluates."""
        given = [call.args[0] for call in evaluation.calls if call.args]
        is_known = evaluation.loader is not None and all(_tensor_of(each) is not None for each in given)
        return (is_known and bool(given)) or not self.may_be_incomplete(evaluation)

    def _plan_evaluations(self, found: list[Evaluation]) -> None:
        for evaluation in found:
            needs = Needs(
                source=evaluation.source,
                scope=evaluation.scope,
                anchor=evaluation.anchor,
                paths=(evaluation.model,),
                name="inference_model",
            )
            try:
                self.evaluations.append(PlannedEvaluation(evaluation=evaluation, name=self.inference.place(needs)))
            except Refused:
                # The module itself has the trained weights, so an evaluation that stays on the host is right too.
                continue
        for planned in self.steps:
            step = planned.step
            if step.condition is None or len(step.models) != 1:
                continue
            needs = Needs(
                source=step.source, scope=step.scope, anchor=step.anchor, paths=step.models, name="inference_model"
            )
            try:
                self._conditional[step] = self.inference.place(needs)
            except Refused:
                continue


def _tensor_of(node: ast.expr) -> str | None:
    """The variable that is given to a model, without a move to a device."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "cuda"):
        node = node.func.value
    return path_of(node)


def _is_optimizer(project: Project, origin: Origin) -> bool:
    name = torch_name(project, origin) or ""
    return name.startswith("torch.optim.") and "lr_scheduler" not in name
