"""Two optimizers in one loop."""

from __future__ import annotations

from pilotage.porting.rule import Example
from pilotage.porting.rules.plain_example import PLAIN_STEP
from pilotage.porting.rules.refusals.refusing import refusing

__all__ = ["RULE"]

RULE = refusing(
    name="two-optimizers",
    what="A loop in which two optimizers take steps is refused.",
    why="A program has one optimizer. Adversarial networks and the like train two models in turn, which is two "
    "programs.",
    message="A second optimizer, {}, takes steps in this loop; a program has one.",
    remedy="Wrap each model with its own loss and optimizer, and call the wrapped models in turn; or give both "
    "groups of parameters to one optimizer.",
    example=Example(
        before=PLAIN_STEP
        + """\
other = torch.optim.Adam(model.parameters())
for x, y in loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    other.step()
""",
        finds="A second optimizer, other",
    ),
)
