"""A step whose model is not visible."""

from __future__ import annotations

from pilotage.porting.rule import Example
from pilotage.porting.rules.plain_example import PLAIN_STEP
from pilotage.porting.rules.refusals.refusing import refusing

__all__ = ["RULE"]

RULE = refusing(
    name="model-not-found",
    what="A step is refused if none of the variables that the loss comes from is known to be the trained model.",
    why="The port must know which call is the model's.",
    message="The loss {} does not come from a call of the model that the optimizer trains, as far as can be seen.",
    remedy="Call the model in the same block as backward().",
    example=Example(
        before=PLAIN_STEP
        + """\
for x, y in loader:
    optimizer.zero_grad()
    loss = torch.stack(rewards).mean()
    loss.backward()
    optimizer.step()
""",
        finds="does not come from a call of the model",
    ),
)
