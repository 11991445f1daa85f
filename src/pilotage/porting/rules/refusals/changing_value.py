"""A loss that depends on a number which changes."""

from __future__ import annotations

from pilotage.porting.rule import Example
from pilotage.porting.rules.plain_example import PLAIN_STEP
from pilotage.porting.rules.refusals.refusing import refusing

__all__ = ["RULE"]

RULE = refusing(
    name="changing-value",
    what="A loss that depends on a Python number which changes between steps, such as a weight that grows with the "
    "epochs, is refused.",
    why="Numbers are fixed when the program is made; only tensors that are given to a call may change.",
    message="The loss depends on {}, which changes while the script runs; in a program it would keep its first value.",
    remedy="Pass it to forward as a tensor: torch.tensor(value).",
    example=Example(
        before=PLAIN_STEP
        + """\
for epoch in range(10):
    weight = epoch / 10
    for x, y in loader:
        optimizer.zero_grad()
        loss = weight * F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
""",
        finds="The loss depends on weight",
    ),
)
