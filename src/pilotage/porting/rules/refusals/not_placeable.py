"""A training loop before which the wrapped model cannot be created."""

from __future__ import annotations

from pilotage.porting.rule import Example
from pilotage.porting.rules.plain_example import PLAIN_STEP
from pilotage.porting.rules.refusals.refusing import refusing

__all__ = ["RULE"]

RULE = refusing(
    name="not-placeable",
    what="Refuses a step if the script never has the model, the criterion and the optimizer together outside the loop.",
    why="The wrapped model must be made once, from the model, its criterion and the optimizer.",
    message="The wrapped model cannot be created before the training loop: no place there has everything that the step "
    "needs ({}).",
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
        finds="The wrapped model cannot be created before the training loop",
    ),
)
