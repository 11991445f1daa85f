"""A backward pass without an optimizer."""

from __future__ import annotations

from pilotage.porting.rule import Example
from pilotage.porting.rules.plain_example import PLAIN_STEP
from pilotage.porting.rules.refusals.refusing import refusing

__all__ = ["RULE"]

RULE = refusing(
    name="no-update",
    what="A loop that calls backward() is refused if no optimizer takes a step in the same loop.",
    why="The update is part of the program. Weights that are changed by hand, or gradients that are collected by "
    "an inner loop, are not.",
    message="backward() is called on {}, but no optimizer takes a step in the same loop.",
    remedy="Use an optimizer instead of changing weights by hand; move step() into the loop with backward().",
    example=Example(
        before=PLAIN_STEP
        + """\
for x, y in loader:
    loss = F.mse_loss(model(x), y)
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.1 * p.grad
            p.grad = None
""",
        finds="no optimizer takes a step",
    ),
)
