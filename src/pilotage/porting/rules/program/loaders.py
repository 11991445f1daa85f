"""Loaders become PopTorch's, and training gets whole batches only."""

from __future__ import annotations

import ast

from pilotage.porting.analysis.lengths import drop_last_of, leaves_a_remainder
from pilotage.porting.analysis.loaders import Loader
from pilotage.porting.finding import Severity
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.rules.plain_example import PLAIN_LOOP
from pilotage.porting.rules.program.accumulation import joins_batches
from pilotage.porting.rules.program.option_names import options_of_loader
from pilotage.porting.sources.source import Source
from pilotage.porting.target import Target
from pilotage.porting.writing.dialect import PROGRAMS
from pilotage.porting.writing.import_places import import_place
from pilotage.porting.writing.settings import setting_in
from pilotage.porting.writing.signatures import argument_place, keyword_span

__all__ = ["RULE"]

NAME = "loader"
_POPDIST_OPTIONS = """\
def popdist_options():
    options = popdist.poptorch.Options()
    if popdist.isPopdistEnvSet():
        with torch.random.fork_rng():
            options.randomSeed(42)  # all instances shuffle alike; the script's own seed stays
    return options
"""


def apply(porting: Porting) -> None:
    """Convert the loaders that feed a step or an evaluation."""
    if not porting.plan.steps and not porting.plan.evaluations:
        return
    for loader in porting.plan.loaders:
        if porting.target is Target.PILOTAGE:
            if any(each.accumulation is not None and not joins_batches(porting, each) for each in loader.steps):
                _feed_whole_batches(porting, loader)
                _enlarge(porting, loader)
            continue
        if loader.steps:
            _feed_whole_batches(porting, loader)
        elif porting.target is Target.POPTORCH:
            _give_drop_last(porting, loader, "False")
        if porting.target is Target.POPTORCH or (porting.target is Target.POPDIST and loader.steps):
            _rename(porting, loader)


def _feed_whole_batches(porting: Porting, loader: Loader) -> None:
    keyword, value = drop_last_of(porting.project, loader)
    if value is True or any(each.arg == "batch_sampler" for each in loader.call.keywords):
        return
    remains = leaves_a_remainder(porting.project, loader)
    if keyword is not None and keyword.arg is None:
        porting.find(
            loader.source,
            loader.call,
            NAME,
            Severity.BY_HAND,
            "drop_last comes from a dictionary, and a program takes batches of one size only.",
            "Set drop_last to True there.",
        )
        return
    _give_drop_last(porting, loader, "True")
    if remains is not False:
        what = (
            "The last batch of an epoch is incomplete" if remains else "If the last batch of an epoch is incomplete, it"
        )
        verb = ", and is" if remains else " is"
        porting.find(
            loader.source,
            loader.call,
            NAME,
            Severity.WARNING,
            f"{what}{verb} left out: a program takes batches of one size only, so the loader gets drop_last=True.",
            "Choose a batch size that divides the data set to train on all of it.",
        )


def _give_drop_last(porting: Porting, loader: Loader, value: str) -> None:
    keyword, _ = drop_last_of(porting.project, loader)
    if keyword is None:
        offset, text = argument_place(loader.source, loader.call, f"drop_last={value}")
        porting.edit(loader.source, offset, offset, text, NAME)
    elif keyword.arg is not None and value == "True":
        porting.replace(loader.source, keyword.value, value, NAME)


def _rename(porting: Porting, loader: Loader) -> None:
    source, call = loader.source, loader.call
    porting.replace(source, call.func, "poptorch.DataLoader", NAME)
    options = options_of_loader(porting, loader)
    if options is None:
        options = _own_options(porting, source)
        if any(step.accumulation is not None for step in loader.steps):
            porting.find(
                source,
                call,
                NAME,
                Severity.REFUSED,
                "The options with the gradient accumulation are not known where this loader is made.",
                "Make the loader in the function that makes the optimizer.",
            )
    start = source.text.index("(", source.span(call.func)[1]) + 1
    porting.edit(source, start, start, _first_argument(source, call, start, options), NAME)
    for keyword in call.keywords:
        if keyword.arg in ("pin_memory", "pin_memory_device"):
            porting.edit(source, *keyword_span(source, call, keyword), "", NAME)


def _first_argument(source: Source, call: ast.Call, start: int, text: str) -> str:
    """The text of a new first argument, on a separate line if the others do not start on the line of the call."""
    given = [source.span(each)[0] for each in (*call.args, *call.keywords)]
    if not given:
        return text
    between = source.text[start : min(given)]
    if "\n" not in between or between.strip():
        return f"{text}, "
    return f"\n{between.rpartition(chr(10))[2]}{text},"


def _own_options(porting: Porting, source: Source) -> str:
    """Options for a loader that is made where the others are not known."""
    if porting.target is not Target.POPDIST:
        return "poptorch.Options()"
    offset, before, _ = import_place(source)
    if not any("def popdist_options" in each.text for each in porting.edits(source)):
        porting.edit(source, offset, offset, f"{before}\n\n{_POPDIST_OPTIONS}", NAME)
    return "popdist_options()"


def _enlarge(porting: Porting, loader: Loader) -> None:
    """A call of `pilotage.training` takes all batches of an update at once."""
    step = next(each for each in loader.steps if each.accumulation is not None)
    assert step.accumulation is not None
    text = setting_in(porting, step, step.accumulation.count, loader.source, loader.scope)
    if text is None:
        porting.find(
            loader.source,
            loader.call,
            NAME,
            Severity.REFUSED,
            "The number of accumulated batches is not known where this loader is made.",
            "Make the loader in the function that makes the optimizer, or write the number as a constant.",
        )
        return
    given = next((each.value for each in loader.call.keywords if each.arg == "batch_size"), None)
    given = given if given is not None else (loader.call.args[1] if len(loader.call.args) > 1 else None)
    if given is None:
        offset, added = argument_place(loader.source, loader.call, f"batch_size={text}")
        porting.edit(loader.source, offset, offset, added, NAME)
        return
    size = loader.source.segment(given)
    factors = [each if _is_factor(each) else f"({each})" for each in (size, text)]
    porting.replace(loader.source, given, " * ".join(factors), NAME)


def _is_factor(text: str) -> bool:
    """Whether an expression needs no brackets in a product."""
    return isinstance(
        ast.parse(text, mode="eval").body, ast.Constant | ast.Name | ast.Attribute | ast.Subscript | ast.Call
    )


RULE = Rule(
    name=NAME,
    targets=PROGRAMS,
    what="DataLoader becomes poptorch.DataLoader with the options, and a loader for training gets "
    "drop_last=True. Loaders for evaluation keep their last batch. With pilotage loaders stay as they are.",
    why="The loader must deliver what one call takes. A program is compiled for one size of batch, so "
    "an incomplete one cannot be trained on; you are warned unless the batch size is known to divide the "
    "data set. pilotage.training makes another program for a smaller last batch.",
    example=Example(
        before="""\
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

model = nn.Linear(8, 1)
loader = DataLoader(dataset, batch_size=16, shuffle=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
        + PLAIN_LOOP,
        after="""\
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

model = nn.Linear(8, 1)
loader = poptorch.DataLoader(options, dataset, batch_size=16, shuffle=True, drop_last=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
        + PLAIN_LOOP,
        finds="it is left out",
    ),
    apply=apply,
)
