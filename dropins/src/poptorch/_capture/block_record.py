"""The blocks that one run of forward goes through, and where each of them runs."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from pilotage.engine import enter_stage
from poptorch.options.placement import Placement, Placer
from poptorch.options.stages import BlockId

__all__ = ["BlockRecord", "Visit"]


@dataclass(frozen=True, slots=True)
class Visit:
    """Forward's arrival in a block."""

    block_id: BlockId
    placement: Placement


class BlockRecord:
    """Follows forward from block to block."""

    def __init__(self, placer: Placer) -> None:
        self.visits: list[Visit] = []
        """In the order of forward; a block that is entered twice is listed twice."""
        self._placer = placer
        self._active: Visit | None = None
        self._scopes: list[Visit] = []
        self.restart_automatic_ids()

    def restart_automatic_ids(self) -> None:
        """Number blocks without an id from "0" again."""
        self._automatic_ids = itertools.count()

    def start(self, user_id: BlockId | None, ipu_id: int | None) -> None:
        """Enter a block that lasts until the next one starts."""
        block_id = str(next(self._automatic_ids)) if user_id is None else user_id
        self._enter(Visit(block_id, self._placer.place(block_id, ipu_id)))

    def open(self, user_id: BlockId | None, ipu_id: int | None) -> None:
        """Enter a block that lasts until it is closed."""
        self.start(user_id, ipu_id)
        self._scopes.append(self.visits[-1])

    def begin(self, stage: int, phase: int, ipu: int) -> None:
        """Enter a block at a given place, until it is closed."""
        self._enter(Visit(f"stage {stage}, phase {phase}, IPU {ipu}", Placement(stage=stage, phase=phase, ipu=ipu)))
        self._scopes.append(self.visits[-1])

    def close(self) -> None:
        """Leave the innermost open block and return to the one around it, if any."""
        self._scopes.pop()
        self._active = self._scopes[-1] if self._scopes else None
        enter_stage(None if self._active is None else self._active.placement.ipu)

    def note_operation(self) -> None:
        """Record the return to an outer block; called when an operation runs there."""
        if self._active is not None and self._active is not self.visits[-1]:
            self.visits.append(self._active)

    @property
    def is_outside(self) -> bool:
        """Whether forward has left all blocks; operations before the first block count as part of it."""
        return bool(self.visits) and self._active is None

    @property
    def ipus(self) -> list[int]:
        """The IPU of each visit."""
        return [visit.placement.ipu for visit in self.visits]

    def _enter(self, visit: Visit) -> None:
        self._active = visit
        self.visits.append(visit)
        enter_stage(visit.placement.ipu)
