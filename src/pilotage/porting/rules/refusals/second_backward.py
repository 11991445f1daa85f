"""Several backward passes in one step."""

from __future__ import annotations

from pilotage.porting.rule import Example
from pilotage.porting.rules.plain_example import PLAIN_STEP
from pilotage.porting.rules.refusals.refusing import refusing

__all__ = ["RULE"]

RULE = refusing(
    name="second-backward",
    what="Several backward passes in one loop, and graphs that are kept for another one, are refused.",
    why="A program has one backward pass, from one loss.",
    message="Another backward pass ({}) belongs to the same step.",
    remedy="Add up the losses, and call backward() once on the sum.",
    example=Example(
        before=PLAIN_STEP
        + """\
for x, y in loader:
    optimizer.zero_grad()
    first = F.mse_loss(model(x), y)
    second = F.l1_loss(model(x), y)
    first.backward()
    second.backward()
    optimizer.step()
""",
        finds="Another backward pass",
    ),
)
