"""Adds an options object with the settings that the loop contained."""

from __future__ import annotations

from pilotage.porting.finding import Severity
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, GuideEdit, Rule
from pilotage.porting.rules.distributed.data_parallel import is_parallel
from pilotage.porting.rules.program.option_names import ScopeOptions, all_options
from pilotage.porting.sources.layout import unit_of_indentation
from pilotage.porting.target import Target
from pilotage.porting.writing.dialect import POPTORCH

__all__ = ["RULE"]

NAME = "options"


def apply(porting: Porting) -> None:
    """Create the options before their first use."""
    for options in all_options(porting):
        place = options.place
        lines = [*_made(porting, options), *_settings(porting, options)]
        text = "".join(f"{place.indent}{line}\n" for line in lines)
        porting.edit(place.source, place.offset, place.offset, text, NAME)
        for planned in options.steps:
            porting.find(
                planned.step.source,
                planned.step.anchor,
                NAME,
                Severity.NOTE,
                "Batch sizes stay and deviceIterations is 1, so that each call makes the same update as the original. "
                "More device iterations are faster, but then a call trains several batches and returns only the last "
                "loss.",
            )


def _made(porting: Porting, options: ScopeOptions) -> list[str]:
    if porting.target is not Target.POPDIST:
        return [f"{options.name} = poptorch.Options()"]
    unit = unit_of_indentation(options.place.source)
    return [
        "if popdist.isPopdistEnvSet():",
        f"{unit}popdist.init()",
        f"{options.name} = popdist.poptorch.Options()",
        "if popdist.isPopdistEnvSet():",
        f"{unit}with torch.random.fork_rng():",
        f"{unit}{unit}{options.name}.randomSeed(42)  # all instances shuffle alike; the script's own seed stays",
    ]


def _settings(porting: Porting, options: ScopeOptions) -> list[str]:
    lines = []
    name = options.name
    for planned in options.steps:
        accumulation = planned.step.accumulation
        if accumulation is not None:
            lines.append(f"{name}.Training.gradientAccumulation({options.counts[planned]})")
            if not planned.joint.is_divided:
                reduction = "accumulationAndReplicationReductionType(poptorch.ReductionType.Sum)"
                lines.append(f"{name}.Training.{reduction}")
            lines.append(f"{name}.outputMode(poptorch.OutputMode.All)")
        if any(each.scaler is not None for each in planned.step.calls):
            lines.append(f"{name}.Training.setAutomaticLossScaling(True)")
    if porting.target is Target.POPTORCH and any(is_parallel(porting, each) for each in porting.project.sources):
        lines.append(f"{name}.replicationFactor(1)  # with n replicas, divide the batch size by n")
    return list(dict.fromkeys(lines))


RULE = Rule(
    name=NAME,
    targets=POPTORCH,
    what="An options object is made before the first loader or wrapped model that needs it. With popdist "
    "it gets a seed, so that all instances shuffle alike.",
    why="Loader and wrapped model must agree on how many batches one call takes.",
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
        finds="each call makes the same update as the original",
    ),
    apply=apply,
    not_followed=(
        GuideEdit(
            guide="CosmicTagger on PopDist",
            edit="sets `replicationFactor(self.args.num_replicas)`, a field that the configuration does not have",
            instead="one replica unless `poprun` says otherwise",
        ),
    ),
)
