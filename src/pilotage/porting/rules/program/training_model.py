"""The wrapped model is made once, before the loop, and gets to the code that uses it."""

from __future__ import annotations

import ast

from pilotage.porting.analysis.clips import clips_of
from pilotage.porting.analysis.placing import Placing, Site
from pilotage.porting.finding import Severity
from pilotage.porting.plan import PlannedStep
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.rules.program.model_with_loss import is_joined, joined_class
from pilotage.porting.rules.program.option_names import options_at
from pilotage.porting.sources.layout import lines_of
from pilotage.porting.target import Target
from pilotage.porting.writing.dialect import PROGRAMS
from pilotage.porting.writing.references import reference
from pilotage.porting.writing.settings import clipping_at, setting_at
from pilotage.porting.writing.signatures import argument_place, parameter_place

__all__ = ["RULE", "pass_on"]

NAME = "training-model"
_WIDTH = 118


def apply(porting: Porting) -> None:
    """Make the wrapped model, and pass it on to the functions that use it."""
    for planned in porting.plan.steps:
        for site in porting.plan.site_of(planned):
            _make(porting, planned, site)
        if planned.step.scope.method_of is not None:
            _say_which_optimizer(porting, planned)
    pass_on(porting, porting.plan.training, NAME)


def pass_on(porting: Porting, placing: Placing, rule: str) -> None:
    """Add parameters to functions and arguments to their calls."""
    for function, (source, names) in placing.parameters.items():
        for name, default in names.items():
            offset, text = parameter_place(source, function, f"{name}{default}")
            porting.edit(source, offset, offset, _once_starred(porting, source, offset, text), rule)
    for call, (source, given) in placing.arguments.items():
        for name, value in given.items():
            offset, text = argument_place(source, call, f"{name}={value}")
            porting.edit(source, offset, offset, text, rule)


def _say_which_optimizer(porting: Porting, planned: PlannedStep) -> None:
    """Guides give the wrapped model an optimizer of its own, which would then train instead of the script's."""
    optimizer = ast.unparse(planned.step.optimizer)
    porting.find(
        planned.step.source,
        planned.step.optimizer,
        NAME,
        Severity.NOTE,
        f"The wrapped model gets {optimizer}, the optimizer that this script steps. A new optimizer for the wrapped "
        "model, as in some guides, would train with other settings than the script's.",
    )


def _once_starred(porting: Porting, source: object, offset: int, text: str) -> str:
    """Without a second ``*`` where another parameter was added before."""
    edits = porting.edits(source)  # type: ignore[arg-type]
    is_starred = any(each.start == each.end == offset and "*, " in each.text for each in edits)
    return text.replace("*, ", "") if is_starred else text


def _make(porting: Porting, planned: PlannedStep, site: Site) -> None:
    optimizer = ast.unparse(planned.step.optimizer)
    given = site.expressions.get(optimizer, optimizer)
    if porting.target is Target.PILOTAGE:
        function, arguments = "pilotage.training", _in_pilotage(porting, planned, site, given)
    else:
        function, arguments = "poptorch.trainingModel", _in_poptorch(porting, planned, site, given)
    if arguments is not None:
        place = site.insertion
        text = _wrapped(place.indent, f"{site.name} = {function}", arguments)
        porting.edit(place.source, place.offset, place.offset, text, NAME)


def _in_poptorch(porting: Porting, planned: PlannedStep, site: Site, optimizer: str) -> list[str] | None:
    joined = _joined(porting, planned, site)
    if joined is None:
        return None
    return [joined, f"options={options_at(porting, site)}", f"optimizer={optimizer}"]


def _in_pilotage(porting: Porting, planned: PlannedStep, site: Site, optimizer: str) -> list[str] | None:
    options = _options(porting, planned, site)
    if not is_joined(porting, planned):
        model = site.expressions.get(planned.step.models[0], planned.step.models[0])
        criterion = planned.joint.criterion or ""
        inlined = porting.plan.training.inlined.get(planned.needs, {})
        loss = site.expressions.get(criterion, inlined.get(criterion, criterion))
        return [model, optimizer, f"loss={loss}", *options]
    joined = _joined(porting, planned, site)
    return None if joined is None else [joined, optimizer, *options]


def _options(porting: Porting, planned: PlannedStep, site: Site) -> list[str]:
    """The options of `pilotage.training` that take the place of code in the loop."""
    options = []
    accumulation = planned.step.accumulation
    if accumulation is not None:
        count = setting_at(porting, planned, site, accumulation.count)
        options += [f"gradient_accumulation={count}", 'outputs="all"']
        options += [] if planned.joint.is_divided else ['reduction="sum"']
    if clips_of(planned.step):
        # If the limit cannot be written here, the rule of clipping refuses it.
        clipping = clipping_at(porting, planned, site)
        options += [] if clipping is None else [clipping]
    return options


def _joined(porting: Porting, planned: PlannedStep, site: Site) -> str | None:
    """The joined module as it is made at a site."""
    source = planned.step.source
    found = reference(porting.project, site.source, source, planned.class_name)
    if found is None:
        porting.find(
            source,
            planned.step.anchor,
            "not-placeable",
            Severity.REFUSED,
            f"The wrapped model would be made in {site.source.path}, which does not import this file.",
            "Import this module there, and port again.",
        )
        return None
    name, statement, line = found
    if statement is not None:
        _, end = lines_of(site.source, statement)
        porting.edit(site.source, end, end, f"{line}\n", NAME)
    arguments = [site.expressions.get(path, path) for path in joined_class(porting, planned).arguments()]
    return f"{name}({', '.join(arguments)})"


def _wrapped(indent: str, call: str, arguments: list[str]) -> str:
    """A call in one line, or with one argument in each line."""
    line = f"{indent}{call}({', '.join(arguments)})"
    if len(line) <= _WIDTH:
        return line + "\n"
    return f"{indent}{call}(\n" + "".join(f"{indent}    {each},\n" for each in arguments) + f"{indent})\n"


RULE = Rule(
    name=NAME,
    targets=PROGRAMS,
    what="The joined module is wrapped once, before the outermost loop. Functions that make the steps get "
    "the wrapped model as a new keyword argument, and classes keep it as an attribute.",
    why="Wrapping compiles the program and takes over the state of the optimizer, so it must not happen "
    "again in every epoch.",
    example=Example(
        before="""\
import torch
import torch.nn.functional as F
from torch import nn


def train(model, optimizer, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()


model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    train(model, optimizer, loader)
""",
        after="""\
import torch
import torch.nn.functional as F
from torch import nn


def train(model, optimizer, loader, *, training_model):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()


model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
training_model = poptorch.trainingModel(ModelWithLoss(model), options=options, optimizer=optimizer)
for epoch in range(3):
    train(model, optimizer, loader, training_model=training_model)
""",
    ),
    apply=apply,
)
