"""Where the blocks of a model run under each execution strategy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from poptorch._errors import require
from poptorch.options.stages import BlockId, Stage
from poptorch.poptorch_core import Error


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one block runs."""

    stage: int
    """Its stage, or its stage within the phase."""
    phase: int
    """Its phase, or -1 without phases."""
    ipu: int
    """The IPU that it was given."""


class Placer(Protocol):
    """Says where each block runs; called for the blocks of one capture in order."""

    def place(self, block_id: BlockId, ipu_id: int | None) -> Placement:
        """Where this block runs."""
        ...


class StagePlacer:
    """Places blocks in the stages that the user listed."""

    def __init__(self, stage_of_block: Mapping[BlockId, Stage]) -> None:
        self._stage_of_block = stage_of_block

    def place(self, block_id: BlockId, ipu_id: int | None) -> Placement:
        """Where this block runs."""
        stage = _listed(self._stage_of_block, block_id)
        return Placement(stage=stage._stage_id, phase=-1, ipu=_first(stage._ipu, ipu_id, stage._stage_id))


class AutomaticPlacer:
    """Numbers the stages after the IPU of each block, or in the order in which blocks appear."""

    def __init__(self, *, increment: bool) -> None:
        self._increment = increment
        self._stage_ids: dict[BlockId, int] = {}

    def place(self, block_id: BlockId, ipu_id: int | None) -> Placement:
        """Where this block runs."""
        if not self._increment:
            if ipu_id is None:
                raise AssertionError(
                    f"Block {block_id!r} has no ipu_id, but poptorch.AutoStage.SameAsIpu takes the stage from it. Set "
                    "an ipu_id, or list the stages in poptorch.PipelinedExecution."
                )
            return Placement(stage=ipu_id, phase=-1, ipu=ipu_id)
        # Stage 0 belongs to what runs before the first block.
        stage_id = self._stage_ids.setdefault(block_id, len(self._stage_ids) + 1)
        return Placement(stage=stage_id, phase=-1, ipu=_first(ipu_id, stage_id))


class PhasePlacer:
    """Places blocks in the phases that the user listed."""

    def __init__(self, stage_of_block: Mapping[BlockId, Stage], *, is_serial: bool) -> None:
        self._stage_of_block = stage_of_block
        self._is_serial = is_serial

    def place(self, block_id: BlockId, ipu_id: int | None) -> Placement:
        """Where this block runs."""
        stage = _listed(self._stage_of_block, block_id)
        ipu = _first(stage._ipu, ipu_id, self._usual_ipu(stage))
        if not self._is_serial and ipu % 2 != stage._phase_id % 2:
            raise Error(
                f"Block {block_id!r} of phase {stage._phase_id} is on IPU {ipu}. In poptorch.ParallelPhasedExecution "
                "even phases must be on even IPUs and odd phases on odd ones."
            )
        return Placement(stage=stage._stage_id, phase=stage._phase_id, ipu=ipu)

    def _usual_ipu(self, stage: Stage) -> int:
        return stage._stage_id if self._is_serial else 2 * stage._stage_id + stage._phase_id % 2


def _listed(stage_of_block: Mapping[BlockId, Stage], block_id: BlockId) -> Stage:
    require(
        block_id in stage_of_block,
        f"Unknown Block {block_id!r}. The execution strategy lists: {', '.join(stage_of_block) or 'none'}.",
    )
    return stage_of_block[block_id]


def _first(*candidates: int | None) -> int:
    return next(candidate for candidate in candidates if candidate is not None)
