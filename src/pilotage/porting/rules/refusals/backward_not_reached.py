"""A backward pass that cannot be turned into a step."""

from __future__ import annotations

from pilotage.porting.rule import Example
from pilotage.porting.rules.plain_example import PLAIN_STEP
from pilotage.porting.rules.refusals.refusing import refusing

__all__ = ["RULE"]

RULE = refusing(
    name="backward-not-reached",
    what="A backward pass in the body of a class is refused.",
    why="A step is looked for in functions, methods and the script itself; a class body runs once, when it is defined.",
    message="backward() is called on {} in the body of a class.",
    remedy="Move the training loop into a function.",
    example=Example(
        before=PLAIN_STEP
        + """\
class Run:
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
""",
        finds="in the body of a class",
    ),
)
