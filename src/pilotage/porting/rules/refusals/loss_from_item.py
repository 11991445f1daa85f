"""A loss that is computed from Python numbers."""

from __future__ import annotations

from pilotage.porting.rule import Example
from pilotage.porting.rules.plain_example import PLAIN_STEP
from pilotage.porting.rules.refusals.refusing import refusing

__all__ = ["RULE"]

RULE = refusing(
    name="loss-from-item",
    what="A loss that needs the value of a tensor in Python, by item(), tolist(), numpy(), float() or int(), is "
    "refused.",
    why="Inside of a program tensors have no values yet; the number would stay that of the first batch.",
    message="The loss needs {}, a Python number that is only known when the program runs.",
    remedy="Compute with the tensor itself: leave out the conversion.",
    example=Example(
        before=PLAIN_STEP
        + """\
for x, y in loader:
    optimizer.zero_grad()
    error = F.mse_loss(model(x), y)
    loss = error * error.item()
    loss.backward()
    optimizer.step()
""",
        finds="The loss needs error.item()",
    ),
)
