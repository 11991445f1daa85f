"""Accumulation whose groups are shifted."""

from __future__ import annotations

from pilotage.porting.rule import Example
from pilotage.porting.rules.plain_example import PLAIN_STEP
from pilotage.porting.rules.refusals.refusing import refusing

__all__ = ["RULE"]

RULE = refusing(
    name="shifted-accumulation",
    what="Accumulation with updates at ``i % n == 0`` is refused.",
    why="With an index that starts at 0, the first update follows a single batch, and every group is shifted by "
    "one; a program makes whole groups.",
    message="The first update follows a single batch, so that the groups of {} batches are shifted.",
    remedy="Write (i + 1) % n == 0.",
    example=Example(
        before=PLAIN_STEP
        + """\
for i, (x, y) in enumerate(loader):
    loss = F.mse_loss(model(x), y) / 4
    loss.backward()
    if i % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
""",
        finds="the groups of 4 batches are shifted",
    ),
)
