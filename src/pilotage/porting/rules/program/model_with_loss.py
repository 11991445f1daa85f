"""Model and criterion are joined in a module that returns the output and the loss."""

from __future__ import annotations

import ast

from pilotage.porting.plan import PlannedStep
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, GuideEdit, Rule
from pilotage.porting.sources.layout import lines_of, unit_of_indentation
from pilotage.porting.sources.source import Source
from pilotage.porting.target import Target
from pilotage.porting.writing.dialect import PROGRAMS, dialect_of
from pilotage.porting.writing.joined_class import JoinedClass
from pilotage.porting.writing.references import base_module

__all__ = ["RULE", "is_joined"]

NAME = "model-with-loss"


def apply(porting: Porting) -> None:
    """Write the class for each step before its first use."""
    for planned in porting.plan.steps:
        if not is_joined(porting, planned):
            continue
        source = planned.step.source
        joined = joined_class(porting, planned)
        mark = None if planned.joint.is_torch_loss else dialect_of(porting.target).mark
        text = joined.text(base_module(porting.project, source), mark)
        offset, before, after = _place(porting, planned, source)
        porting.edit(source, offset, offset, f"{before}{text}{after}", NAME)


def is_joined(porting: Porting, planned: PlannedStep) -> bool:
    """Whether a class is needed: `pilotage.training` joins a plain criterion by itself."""
    return porting.target is not Target.PILOTAGE or planned.joint.criterion is None


def joined_class(porting: Porting, planned: PlannedStep) -> JoinedClass:
    """The class of a step."""
    inlined = porting.plan.training.inlined.get(planned.needs, {})
    return JoinedClass(porting.project, planned, inlined, unit_of_indentation(planned.step.source))


def _place(porting: Porting, planned: PlannedStep, source: Source) -> tuple[int, str, str]:
    """Where the class goes, with the blank lines around it: after the definitions above its first use."""
    uses = [source.line_start(planned.step.anchor.lineno)]
    uses += [site.insertion.offset for site in porting.plan.site_of(planned) if site.source is source]
    first = min(uses)
    statements = source.tree.body
    above = [each for each in statements if source.span(each)[1] < first]
    around = next((each for each in statements if _contains(source, each, first)), None)
    if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        start, _ = lines_of(source, around, with_comments=True)
        return start, "", "\n\n"
    definitions = [each for each in above if isinstance(each, ast.ClassDef | ast.FunctionDef)]
    imports = [each for each in above if isinstance(each, ast.Import | ast.ImportFrom)]
    last: ast.stmt | None = next(iter([*definitions[-1:], *imports[-1:]]), None)
    if last is None:
        return 0, "", "\n\n"
    _, end = lines_of(source, last)
    following = source.text[end:].replace("\r\n", "\n")[:2]
    blank = len(following) - len(following.lstrip("\n"))
    return end, "\n\n", "\n" * (2 - blank)


def _contains(source: Source, statement: ast.stmt, offset: int) -> bool:
    start, end = lines_of(source, statement)
    return start <= offset < end


RULE = Rule(
    name=NAME,
    targets=PROGRAMS,
    what="The statements from the model's call to the loss move into a new module, which is made from the "
    "model and the criterion and returns the output and the loss. The model itself is not changed.",
    why="The loss must be part of the program. A new module around the model works for third-party "
    "models too, and the names of the weights stay the same in the original one.",
    example=Example(
        before="""\
import torch
import torch.nn.functional as F
from torch import nn

model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y) + 0.1 * model.weight.abs().sum()
    loss.backward()
    optimizer.step()
""",
        after="""\
import torch
import torch.nn.functional as F
from torch import nn


class ModelWithLoss(nn.Module):
    \"\"\"The model and its loss as one module, so that a training step is one call.\"\"\"

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, y):
        loss = F.cross_entropy(self.model(x), y) + 0.1 * self.model.weight.abs().sum()
        return poptorch.identity_loss(loss, reduction="none")


model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y) + 0.1 * model.weight.abs().sum()
    loss.backward()
    optimizer.step()
""",
    ),
    apply=apply,
    not_followed=(
        GuideEdit(
            guide="CosmicTagger on Graphcore",
            edit="passes the loss function into the network's `forward`",
            instead="joins them in a separate module; networks stay usable without PopTorch",
        ),
    ),
)
