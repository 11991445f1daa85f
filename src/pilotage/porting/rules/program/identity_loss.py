"""Losses that are not torch's own are marked."""

from __future__ import annotations

from pilotage.porting.finding import Severity
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.rules.plain_example import PLAIN_STEP
from pilotage.porting.rules.program.model_with_loss import is_joined
from pilotage.porting.writing.dialect import PROGRAMS, dialect_of

__all__ = ["RULE"]

NAME = "identity-loss"


def apply(porting: Porting) -> None:
    """Report which losses are marked; the class of the step contains the mark."""
    for planned in porting.plan.steps:
        if not planned.joint.is_torch_loss and is_joined(porting, planned):
            mark = dialect_of(porting.target).mark.partition("(")[0]
            porting.find(
                planned.step.source,
                planned.step.loss,
                NAME,
                Severity.NOTE,
                f"The loss is not just the result of one of torch's loss functions, so {mark} marks it.",
            )


RULE = Rule(
    name=NAME,
    targets=PROGRAMS,
    what="A loss that is a sum, a product or a function of the script's own is wrapped in poptorch.identity_loss.",
    why="Backward starts from the loss function of torch that forward calls. Without a mark, whatever is "
    "computed after it would be left out of training.",
    example=Example(
        before=PLAIN_STEP
        + """\
for x, y in loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y) + 0.1 * model.weight.abs().sum()
    loss.backward()
    optimizer.step()
""",
        finds="poptorch.identity_loss marks it",
    ),
    apply=apply,
)
