"""An optimizer whose creation is not found."""

from __future__ import annotations

from pilotage.porting.rule import Example
from pilotage.porting.rules.plain_example import PLAIN_STEP
from pilotage.porting.rules.refusals.refusing import refusing

__all__ = ["RULE"]

RULE = refusing(
    name="optimizer-not-found",
    what="A step is refused if the call that makes its optimizer is not among the files that are ported.",
    why="The optimizer becomes part of the program, so its kind and its values must be known.",
    message="The call that makes the optimizer {} is not in the ported files, or it is not one of torch.optim.",
    remedy="Port all files of the program together, and make the optimizer by its name in torch.optim.",
    example=Example(
        before=PLAIN_STEP
        + """\
opt = make_optimizer(model)
for x, y in loader:
    opt.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    opt.step()
""",
        finds="The call that makes the optimizer",
    ),
)
