"""A loss that is not computed beside its backward pass."""

from __future__ import annotations

from pilotage.porting.rule import Example
from pilotage.porting.rules.plain_example import PLAIN_STEP
from pilotage.porting.rules.refusals.refusing import refusing

__all__ = ["RULE"]

RULE = refusing(
    name="loss-from-elsewhere",
    what="A backward pass from a loss that is computed in another function or block is refused.",
    why="Forward, loss and backward must be moved together into one module.",
    message="backward() of {} is called here, but it is computed somewhere else.",
    remedy="Compute the loss in the same block as backward().",
    example=Example(
        before=PLAIN_STEP
        + """\


def update(loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        finds="computed somewhere else",
    ),
)
