"""A batch that is an object of the script's own class."""

from __future__ import annotations

from pilotage.porting.rule import Example
from pilotage.porting.rules.plain_example import PLAIN_STEP
from pilotage.porting.rules.refusals.refusing import refusing

__all__ = ["RULE"]

RULE = refusing(
    name="object-input",
    what="A batch that is given to the model as a whole, and whose fields the loss reads, is refused.",
    why="A program takes tensors, also in lists, tuples and dictionaries. An object of another class is a constant to "
    "it, and each new one would be another program.",
    message="{} is an object with fields, and a program takes tensors.",
    remedy="Let forward take the tensors that it needs, and give it those fields: model(batch.x, batch.y).",
    example=Example(
        before=PLAIN_STEP
        + """\
for batch in loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(batch), batch.label)
    loss.backward()
    optimizer.step()
""",
        finds="batch is an object with fields",
    ),
)
