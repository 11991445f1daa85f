"""Clipping by norm becomes an option of the optimizer."""

from __future__ import annotations

import ast

from pilotage.porting.analysis.code.flow import assigned, root_of
from pilotage.porting.analysis.code.origins import Origin, origins
from pilotage.porting.analysis.kinds import torch_name
from pilotage.porting.analysis.step import TrainingStep
from pilotage.porting.analysis.training_calls import CallKind, TrainingCall
from pilotage.porting.finding import Severity
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.rules.plain_example import PLAIN_STEP
from pilotage.porting.target import Target
from pilotage.porting.writing.dialect import PROGRAMS
from pilotage.porting.writing.signatures import argument_place

__all__ = ["RULE"]

NAME = "clipping"


def apply(porting: Porting) -> None:
    """Give the optimizers of clipped steps a largest norm."""
    for planned in porting.plan.steps:
        step = planned.step
        clips = [each for each in step.calls if each.kind is CallKind.CLIP]
        for clip in clips[:1]:
            reason = _reason_against(porting, step, clip, planned.optimizers)
            if reason is not None:
                porting.find(step.source, clip.call, NAME, Severity.REFUSED, *reason)
                continue
            for origin in planned.optimizers:
                norm = _norm_at(porting, step, clip, origin)
                assert isinstance(origin.node, ast.Call)
                if norm is None:
                    porting.find(
                        step.source,
                        clip.call,
                        NAME,
                        Severity.REFUSED,
                        "The largest norm is not known where the optimizer is made.",
                        "Give it to the function that makes the optimizer, or write it as a constant.",
                    )
                    continue
                offset, text = argument_place(origin.source, origin.node, f"max_grad_norm={norm}")
                porting.edit(origin.source, offset, offset, text, NAME)


def _reason_against(
    porting: Porting, step: TrainingStep, clip: TrainingCall, made: tuple[Origin, ...]
) -> tuple[str, str] | None:
    name = ast.unparse(clip.call.func).rpartition(".")[2]
    if porting.target is Target.PILOTAGE:
        option = name.removesuffix("_")
        return (
            "The port does not carry the clipping over to pilotage.training.",
            f"Leave out this line, port, and give pilotage.training {option}=... by hand.",
        )
    if name == "clip_grad_value_":
        return "Gradients cannot be clipped by value in a program.", "Clip by norm, with clip_grad_norm_."
    kind = next((each.value for each in clip.call.keywords if each.arg == "norm_type"), None)
    kind = kind if kind is not None else (clip.call.args[2] if len(clip.call.args) > 2 else None)
    if kind is not None and not (isinstance(kind, ast.Constant) and kind.value == 2):
        return "Only the Euclidean norm of gradients can be clipped in a program.", "Leave out norm_type."
    statement = step.source.statement(clip.call)
    names = assigned(statement)
    if names and any(name in step.source.text.replace(step.source.segment(statement), "") for name in names):
        return "The norm of the gradients is used, and a program does not return it.", "Leave out what uses it."
    for origin in made:
        if (torch_name(porting.project, origin) or "").endswith("RMSprop"):
            return "poptorch's RMSprop does not clip gradients.", "Use SGD, Adam or AdamW, or leave out the clipping."
    return None


def _norm_at(porting: Porting, step: TrainingStep, clip: TrainingCall, origin: Origin) -> str | None:
    """The largest norm as it is written where the optimizer is made."""
    norm = next((each.value for each in clip.call.keywords if each.arg == "max_norm"), None)
    norm = norm if norm is not None else (clip.call.args[1] if len(clip.call.args) > 1 else None)
    if norm is None:
        return None
    condition = next(
        (each for each in step.source.ancestors(step.source.statement(clip.call)) if isinstance(each, ast.If)), None
    )
    nodes = [norm] if condition is None or condition is step.condition else [norm, condition.test]
    texts = [_text_at(porting, step, each, origin) for each in nodes]
    if any(text is None for text in texts):
        return None
    if len(texts) == 1 or texts[1] in (f"{texts[0]} is not None", texts[0]):
        return texts[0]
    return f"{texts[0]} if {texts[1]} else None"


def _text_at(porting: Porting, step: TrainingStep, node: ast.expr, origin: Origin) -> str | None:
    """An expression of the step as it is written where the optimizer is made; None if it cannot be."""
    roots = {root_of(each) for each in ast.walk(node) if isinstance(each, ast.Name)}
    is_same = all(
        root is None
        or root in ("scaler",)
        or (step.scope.resolve(root) is not None and step.scope.resolve(root) is origin.scope.resolve(root))
        for root in roots
    )
    if is_same and origin.source is step.source:
        return step.source.segment(node)
    found = [each.node for each in origins(porting.project, step.source, node)]
    texts = {ast.unparse(each) for each in found if isinstance(each, ast.Constant)}
    if len(texts) == 1 and len(found) == 1:
        return texts.pop()
    # A settings object that both functions get under the same name.
    if roots and all(root is not None and origin.scope.resolve(root) is not None for root in roots):
        return step.source.segment(node)
    return None


RULE = Rule(
    name=NAME,
    targets=PROGRAMS,
    what="clip_grad_norm_ becomes max_grad_norm of poptorch's optimizer. Clipping by value, by another "
    "norm, and code that reads the norm are refused.",
    why="Gradients exist only inside of the program, so only the program can clip them.",
    example=Example(
        before=PLAIN_STEP
        + """\
for x, y in loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
""",
        after="""\
import torch
import torch.nn.functional as F
from torch import nn

model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, max_grad_norm=1.0)
for x, y in loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
""",
    ),
    apply=apply,
)
