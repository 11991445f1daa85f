"""Execution strategies: in which order the blocks of a model run, and on which IPU."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Self

from poptorch._errors import require
from poptorch.enums import AutoStage, Liveness
from poptorch.options.placement import AutomaticPlacer, PhasePlacer, Placer, StagePlacer
from poptorch.options.stages import BlockId, Phase, Stage

__all__ = ["ParallelPhasedExecution", "PipelinedExecution", "SerialPhasedExecution", "ShardedExecution"]


class _IExecutionStrategy(ABC):
    """What every strategy can do."""

    def __init__(self, stages: Iterable[Stage]) -> None:
        self._stage_of_block: dict[BlockId, Stage] = {}
        for stage in stages:
            for block_id in stage.blocks:
                require(block_id not in self._stage_of_block, f"{block_id} is associated with more than one stage.")
                self._stage_of_block[block_id] = stage

    def stage(self, block_id: BlockId) -> Stage:
        """The stage that a block belongs to."""
        require(
            block_id in self._stage_of_block,
            f"Unknown block {block_id!r}. The strategy knows: {', '.join(self._stage_of_block) or 'none'}.",
        )
        return self._stage_of_block[block_id]

    @abstractmethod
    def backendOptions(self) -> dict[str, Any]:
        """The strategy's options for the layer below."""

    @abstractmethod
    def placer(self) -> Placer:
        """A new placer for the blocks of one capture."""


class PipelinedExecution(_IExecutionStrategy):
    """Stages work at the same time on consecutive micro-batches."""

    _execution_mode: ClassVar[int] = 0

    def __init__(self, *args: AutoStage | Stage | BlockId | Sequence[BlockId]) -> None:
        self._auto_stage: AutoStage | None = None
        self._stages: list[Stage] = []
        if not args:
            self._auto_stage = AutoStage.SameAsIpu
        elif len(args) == 1 and isinstance(args[0], AutoStage):
            self._auto_stage = args[0]
        else:
            self._stages = [_as_stage(argument) for argument in args]
        for index, stage in enumerate(self._stages):
            stage._stage_id = index
        super().__init__(self._stages)

    def backendOptions(self) -> dict[str, Any]:
        """The strategy's options for the layer below."""
        return {"execution_mode": self._execution_mode}

    def placer(self) -> Placer:
        """A new placer for the blocks of one capture."""
        if self._auto_stage is None:
            return StagePlacer(self._stage_of_block)
        return AutomaticPlacer(increment=self._auto_stage is AutoStage.AutoIncrement)

    def __repr__(self) -> str:
        arguments: Sequence[object] = (
            self._stages if self._auto_stage is None else [f"AutoStage.{self._auto_stage.name}"]
        )
        return f"{type(self).__name__}({', '.join(map(str, arguments))})"


class ShardedExecution(PipelinedExecution):
    """Stages run one after another, each micro-batch through all of them before the next."""

    _execution_mode: ClassVar[int] = 1


class _IPhasedExecution(_IExecutionStrategy):
    """Phases that follow each other, each with stages that run at the same time."""

    _is_serial: ClassVar[bool]

    def __init__(self, *phases: Phase | BlockId | Sequence[Stage] | Sequence[BlockId]) -> None:
        require(phases, "A phased execution needs at least one phase.")
        self._phases = [_as_phase(phase) for phase in phases]
        self._separate_backward_phase = False
        self._tensors_liveness = Liveness.AlwaysLive
        for phase_id, phase in enumerate(self._phases):
            for stage_id, stage in enumerate(phase.stages):
                stage._phase_id, stage._stage_id = phase_id, stage_id
        super().__init__(stage for phase in self._phases for stage in phase.stages)

    def phase(self, phase: int) -> Phase:
        """The phase of this index."""
        require(
            isinstance(phase, int) and 0 <= phase < len(self._phases),
            f"Phase {phase!r} does not exist. Phases are whole numbers from 0 to {len(self._phases) - 1}.",
        )
        return self._phases[phase]

    def useSeparateBackwardPhase(self, use: bool = True) -> Self:
        """Give the backward pass separate phases."""
        require(isinstance(use, bool), f"useSeparateBackwardPhase takes True or False, not {use!r}.")
        self._separate_backward_phase = use
        return self

    def backendOptions(self) -> dict[str, Any]:
        """The strategy's options for the layer below."""
        return {
            "execution_mode": 2,
            "separate_backward_phase": self._separate_backward_phase,
            "tensors_liveness": int(self._tensors_liveness),
            "serial_phases_execution": self._is_serial,
        }

    def placer(self) -> Placer:
        """A new placer for the blocks of one capture."""
        return PhasePlacer(self._stage_of_block, is_serial=self._is_serial)

    def __repr__(self) -> str:
        phases = ", ".join(map(repr, self._phases))
        backward = ".useSeparateBackwardPhase()" if self._separate_backward_phase else ""
        return f"{type(self).__name__}({phases}){backward}[{self._tensors_liveness.name}]"


class ParallelPhasedExecution(_IPhasedExecution):
    """Even and odd phases take turns on two groups of IPUs."""

    _is_serial: ClassVar[bool] = False

    def sendTensorsOffChipAfterFwd(self, off_chip: bool = True) -> Self:
        """Move the tensors off the chip between the forward and the backward pass."""
        require(isinstance(off_chip, bool), f"sendTensorsOffChipAfterFwd takes True or False, not {off_chip!r}.")
        self._tensors_liveness = Liveness.OffChipAfterFwd if off_chip else Liveness.AlwaysLive
        return self


class SerialPhasedExecution(_IPhasedExecution):
    """All phases run one after another on one group of IPUs."""

    _is_serial: ClassVar[bool] = True

    def setTensorsLiveness(self, liveness: Liveness) -> Self:
        """When the tensors are moved off the chip."""
        require(isinstance(liveness, Liveness), f"setTensorsLiveness takes a poptorch.Liveness, not {liveness!r}.")
        self._tensors_liveness = liveness
        return self


def _as_stage(argument: object) -> Stage:
    if isinstance(argument, Stage):
        return argument
    if isinstance(argument, list | tuple):
        return Stage(*argument)
    if isinstance(argument, str):
        return Stage(argument)
    raise AssertionError(f"A stage must be a poptorch.Stage, a block id or a list of block ids, not {argument!r}.")


def _as_phase(argument: object) -> Phase:
    if isinstance(argument, Phase):
        return argument
    if isinstance(argument, list | tuple):
        return Phase(*argument)
    if isinstance(argument, str | Stage):
        return Phase(argument)
    raise AssertionError(
        f"A phase must be a poptorch.Phase, a list of stages or block ids, or a block id, not {argument!r}."
    )
