"""No place to make the wrapped model."""

from __future__ import annotations

from pilotage.porting.rule import Example
from pilotage.porting.rules.plain_example import PLAIN_STEP
from pilotage.porting.rules.refusals.refusing import refusing

__all__ = ["RULE"]

RULE = refusing(
    name="not-placeable",
    what="Refuses a step if the script never has the model, the criterion and the optimizer together outside the loop.",
    why="The wrapped model must be made once, from the model, its criterion and the optimizer.",
    message="There is no place before the training loop where everything the step needs is known ({}).",
    remedy="Make model, criterion and optimizer in one function, or pass them together.",
    example=Example(
        before=PLAIN_STEP
        + """\
for x, y in loader:
    criterion = nn.MSELoss()
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
""",
        finds="There is no place before the training loop",
    ),
)
