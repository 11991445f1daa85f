"""Training loops that another library runs."""

from __future__ import annotations

import ast
import re

from pilotage.porting.finding import Severity
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.target import Target

__all__ = ["RULE", "is_of_another_library"]

NAME = "training-elsewhere"
_LIBRARIES = re.compile(
    r"(pytorch_lightning|lightning(\.pytorch|\.fabric)?|lightning_fabric)\.(Trainer|Fabric)"
    r"|accelerate\.Accelerator|deepspeed\.initialize|ignite\.engine\.\w+|transformers\.(Seq2Seq)?Trainer"
    r"|fastai\.[\w.]*[Ll]earner|catalyst\.[\w.]*Runner|composer\.Trainer"
)


def is_of_another_library(dotted: str) -> bool:
    """Whether a call creates a trainer that runs the training loop itself."""
    return _LIBRARIES.fullmatch(dotted) is not None


def apply(porting: Porting) -> None:
    """Report calls that create such trainers."""
    for source in porting.project.sources:
        for node in source.nodes:
            name = porting.project.names[source].calls(node)
            if name is not None and isinstance(node, ast.Call) and is_of_another_library(name):
                porting.find(
                    source,
                    node,
                    NAME,
                    Severity.REFUSED,
                    f"{name} runs the backward passes and updates of this script, so the script has no training step "
                    "to convert.",
                    _remedy(porting.target, name),
                )


def _remedy(target: Target, name: str) -> str:
    if name.endswith("Trainer") and name.startswith("transformers."):
        if target is Target.PILOTAGE:
            return "Use pilotage.integrations.transformers.Trainer, which takes the same arguments."
        if target is Target.HPU:
            return "Use GaudiTrainer of optimum-habana, which takes the same arguments."
    if target is Target.HPU:
        return "Choose Gaudi in that library's own way, or write the loop in plain PyTorch and port that."
    return "Write the loop in plain PyTorch (zero_grad, forward, loss, backward, step), and port that."


RULE = Rule(
    name=NAME,
    targets=frozenset(Target),
    what="A script that is trained by Lightning, Accelerate, DeepSpeed, Ignite, fastai, Composer or the Trainer of "
    "Transformers is refused.",
    why="The training step is in that library, not in the script.",
    example=Example(
        before="""\
import torch
from accelerate import Accelerator
from torch import nn

accelerator = Accelerator()
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    accelerator.backward(loss)
    optimizer.step()
""",
        finds="accelerate.Accelerator runs the backward passes",
    ),
    apply=apply,
)
