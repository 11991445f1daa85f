"""An optimizer that calls a closure."""

from __future__ import annotations

from pilotage.porting.rule import Example
from pilotage.porting.rules.plain_example import PLAIN_STEP
from pilotage.porting.rules.refusals.refusing import refusing

__all__ = ["RULE"]

RULE = refusing(
    name="optimizer-closure",
    what="An optimizer that may call its closure several times, such as LBFGS, is refused; others are converted.",
    why="Such an optimizer decides while it runs how often to evaluate the model, and a program cannot.",
    message="{}.step() is given a closure, which it may call any number of times.",
    remedy="Use an optimizer that needs no closure, such as Adam.",
    example=Example(
        before=PLAIN_STEP.replace("SGD", "LBFGS")
        + """\
def closure():
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    return loss


for x, y in loader:
    optimizer.step(closure)
""",
        finds="is given a closure",
    ),
)
