"""Rounds of micro-batches through the stages of a pipeline, by torch.distributed.pipelining."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor

from pilotage.errors import OptionError
from pilotage.options.choices import PipelineOrder
from pilotage.strategies.stages.work import StageModule, StageWork


def order_for(asked: PipelineOrder | None, round_: int, stages: int, *, trains: bool) -> PipelineOrder:
    """The order in which stages work: the one that is asked for, or the one that needs the least memory."""
    if asked is PipelineOrder.SHARDED:
        return asked
    if not trains:
        return PipelineOrder.GPIPE
    if asked is PipelineOrder.ONE_FORWARD_ONE_BACKWARD and round_ < stages:
        raise OptionError(
            f"The order of the pipeline is '1f1b', which needs as many micro-batches in an update as there are stages, {stages} "
            f"at least, and there are {round_}. Raise gradient accumulation, or use 'gpipe'."
        )
    if asked is not None:
        return asked
    return PipelineOrder.ONE_FORWARD_ONE_BACKWARD if round_ >= stages else PipelineOrder.GPIPE


class Rounds:
    """One stage among its neighbours; every round passes equally many micro-batches through all stages."""

    def __init__(
        self,
        work: StageWork,
        stage: int,
        stages: int,
        group: dist.ProcessGroup | None,
        device: torch.device,
        size: int,
        order: PipelineOrder,
        wait: Callable[[], None],
    ) -> None:
        # Takes a while to import, and most programs are no pipelines.
        from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

        self.work = work
        trains, is_first, is_last = work.trains, stage == 0, stage == stages - 1
        before, behind = work.sizes
        there = PipelineStage(
            StageModule(work),
            stage,
            stages,
            device,
            input_args=torch.empty(1 if is_first else before, device=device, requires_grad=trains and not is_first),
            output_args=torch.empty(behind, device=device, requires_grad=trains),
            group=group,
        )
        # One micro-batch at a time is no pipeline any more: the next one begins when it has come back.
        together = 1 if order is PipelineOrder.SHARDED else size
        kind = Schedule1F1B if order is PipelineOrder.ONE_FORWARD_ONE_BACKWARD else ScheduleGPipe
        self._schedule = kind(there, together, loss_fn=_go_back if trains else None, scale_grads=False)
        self._repetitions = size // together
        numbers = torch.zeros(together, device=device)
        self._arguments = (numbers,) if is_first else ()
        self._target = numbers if is_last and trains else None
        # Without backward nothing comes back, and the first stage would run ahead.
        self._wait = wait if order is PipelineOrder.SHARDED and not trains else None

    def run(self) -> None:
        """Pass one round through this stage; all others have to do the same."""
        for _ in range(self._repetitions):
            self._schedule.step(*self._arguments, target=self._target)
            if self._wait is not None:
                self._wait()


def _go_back(result: Tensor, _: Tensor) -> Tensor:
    """Where torch begins its backward; the gradient of the real loss is a part of the captured graph."""
    return result.sum()
