"""An options object comes, with what used to be written in the loop."""

from __future__ import annotations

from pilotage.porting.finding import Severity
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.rules.program.option_names import ScopeOptions, all_options
from pilotage.porting.target import Target
from pilotage.porting.writing.dialect import POPTORCH

__all__ = ["RULE"]

NAME = "options"


def apply(porting: Porting) -> None:
    """Make the options before what needs them."""
    for options in all_options(porting):
        made = "popdist.poptorch.Options()" if porting.target is Target.POPDIST else "poptorch.Options()"
        lines = [f"{options.name} = {made}", *_settings(porting, options)]
        place = options.place
        text = "".join(f"{place.indent}{line}\n" for line in lines)
        porting.edit(place.source, place.offset, place.offset, text, NAME)
        for planned in options.steps:
            porting.find(
                planned.step.source,
                planned.step.anchor,
                NAME,
                Severity.NOTE,
                "Batch sizes stay and deviceIterations is 1, so that each call makes the same update as the original. "
                "More device iterations are faster, but then a call trains several batches and returns only the last loss.",
            )


def _settings(porting: Porting, options: ScopeOptions) -> list[str]:
    lines = []
    for planned in options.steps:
        accumulation = planned.step.accumulation
        if accumulation is None:
            continue
        count = planned.step.source.segment(accumulation.count)
        lines.append(f"{options.name}.Training.gradientAccumulation({count})")
        if not planned.joint.is_divided:
            reduction = "accumulationAndReplicationReductionType(poptorch.ReductionType.Sum)"
            lines.append(f"{options.name}.Training.{reduction}")
        lines.append(f"{options.name}.outputMode(poptorch.OutputMode.All)")
    if porting.target is Target.POPDIST:
        lines.append(f"{options.name}.randomSeed(42)  # all instances have to shuffle alike")
    return lines


RULE = Rule(
    name=NAME,
    targets=POPTORCH,
    what="An options object is made before the first loader or wrapped model that needs it. With popdist it gets a seed, so "
    "that all instances shuffle alike.",
    why="Loader and wrapped model have to agree on how many batches one call takes.",
    example=Example(
        before="""\
import torch
from torch import nn
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=16, drop_last=True)
model = nn.Linear(8, 2)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
""",
        after="""\
import torch
from torch import nn
from torch.utils.data import DataLoader

options = poptorch.Options()
loader = DataLoader(dataset, batch_size=16, drop_last=True)
model = nn.Linear(8, 2)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
""",
    ),
    apply=apply,
)
