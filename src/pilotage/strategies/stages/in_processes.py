"""Stages in several processes of one instance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch
import torch.distributed as dist
from torch import Tensor

from pilotage.distributed.pipeline_group import PipelineGroup
from pilotage.errors import DistributedError
from pilotage.options.choices import PipelineOrder
from pilotage.passes.stage_program import StageProgram
from pilotage.program.layout import StateLayout
from pilotage.program.specification import TensorSpec
from pilotage.strategies.stages.messages import Message
from pilotage.strategies.stages.work import StageModule, StageWork

_HOST = torch.device("cpu")


class ProcessTransport:
    """Runs one stage together with the processes of the others, by torch.distributed.pipelining."""

    def __init__(
        self,
        pipeline_group: PipelineGroup,
        cut: StageProgram,
        layout: StateLayout,
        device: torch.device,
        order: PipelineOrder,
        micro_batches: int,
    ) -> None:
        """``layout`` is that of the whole program, ``micro_batches`` the number in each round."""
        self.local_stages = range(pipeline_group.stage, pipeline_group.stage + 1)
        self._pipeline_group = pipeline_group
        self._cut = cut
        self._layout = layout
        self._device = device
        self._order = order
        self._micro_batches = micro_batches
        self._round: _Round | None = None
        self._messages: list[Message] = []
        """The messages for each stage's outputs, known after the first call."""

    def again(self, micro_batches: int) -> ProcessTransport:
        """A transport between the same stages for calls with this many micro-batches in each round."""
        return ProcessTransport(self._pipeline_group, self._cut, self._layout, self._device, self._order, micro_batches)

    def begin_call(self, works: Sequence[StageWork], inputs: Sequence[Tensor], *, reconnect: bool) -> Sequence[Tensor]:
        """Connect the stages; other stages use the inputs of the first one."""
        shared = list(inputs)
        for position in self._cut.graphs.inputs:
            if self._pipeline_group.stage > 0:
                # Not in the user's own tensor.
                shared[position] = torch.empty_like(shared[position], device=_HOST)
            self._pipeline_group.broadcast([shared[position]])
        if self._round is None or reconnect:
            self._round = self._connected(works[0])
        return shared

    def run_round(self, works: Sequence[StageWork]) -> None:
        """Pass one round of micro-batches through this stage; all other processes do the same."""
        assert self._round is not None
        with self._pipeline_group.peers.explain_errors("passing micro-batches on"):
            self._round.run()

    def gather(self, values: Sequence[float]) -> list[float]:
        """One number for each stage."""
        return [value for theirs in self._pipeline_group.gather(list(values)) for value in theirs]

    def join_outputs(self, own: list[Tensor], *, finite: bool) -> tuple[list[Tensor], bool]:
        """The outputs of all stages, and whether all of them have seen only finite losses."""
        mine, owners = [*own, torch.tensor(finite)], self._cut.graphs.owners
        if not self._messages:
            everyone = self._pipeline_group.gather([TensorSpec.of(tensor).dense.plain for tensor in mine])
            self._messages = [Message(tuple(TensorSpec(*each) for each in theirs)) for theirs in everyone]
        outputs: dict[int, Tensor] = {}
        for stage in sorted(set(owners)):
            *theirs, is_finite = self._sent_by(stage, mine)
            numbers = [number for number in self._cut.outputs if owners[number] == stage]
            outputs |= dict(zip(numbers, own if stage == self._pipeline_group.stage else theirs, strict=True))
            finite = finite and bool(is_finite)
        return [outputs[number] for number in self._cut.outputs], finite

    def join_weights(self, own: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """The weights and buffers of all stages, each from the stage that owns it."""
        layout = self._layout
        specifications = {name: spec.dense for name, spec in {**layout.parameters, **layout.buffers}.items()}
        found: dict[str, Tensor] = {}
        for stage in range(self._pipeline_group.stages):
            names = [name for name, where in self._cut.state_stages.items() if where == stage]
            message = Message([specifications[name] for name in names])
            if message.size:
                is_mine = stage == self._pipeline_group.stage
                carrier = message.pack([own[name] for name in names], _HOST) if is_mine else torch.empty(message.size)
                self._pipeline_group.broadcast([carrier], stage)
                found |= dict(zip(names, message.unpack(carrier), strict=True))
        return found

    def _connected(self, work: StageWork) -> _Round:
        group, device = self._pipeline_group.transport(self._device)
        work.carrier_device = device
        crossings = self._pipeline_group.gather(work.crossings)
        for stage, (mine, theirs) in enumerate(pairwise(crossings)):
            if mine[1] != theirs[0]:
                raise DistributedError(
                    f"What stage {stage} sends is not what stage {stage + 1} expects. All processes of an instance "
                    "must build the same model and call it with batches of the same shape."
                )
        return _Round(work, self._pipeline_group, group, device, self._micro_batches, self._order)

    def _sent_by(self, stage: int, mine: list[Tensor]) -> list[Tensor]:
        message = self._messages[stage]
        carrier = message.pack(mine, _HOST) if stage == self._pipeline_group.stage else torch.empty(message.size)
        self._pipeline_group.broadcast([carrier], stage)
        # Separate tensors, not views of one that contains all of them.
        return [tensor.clone() for tensor in message.unpack(carrier)]


class _Round:
    """One stage among its neighbours; every round passes the same number of micro-batches through all stages."""

    def __init__(
        self,
        work: StageWork,
        pipeline_group: PipelineGroup,
        group: dist.ProcessGroup | None,
        device: torch.device,
        micro_batches: int,
        order: PipelineOrder,
    ) -> None:
        # Takes a while to import, and most programs are not pipelines.
        from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

        trains, is_first, is_last = (
            work.trains,
            pipeline_group.stage == 0,
            pipeline_group.stage == pipeline_group.stages - 1,
        )
        before, behind = work.sizes
        there = PipelineStage(
            StageModule(work),
            pipeline_group.stage,
            pipeline_group.stages,
            device,
            input_args=torch.empty(1 if is_first else before, device=device, requires_grad=trains and not is_first),
            output_args=torch.empty(behind, device=device, requires_grad=trains),
            group=group,
        )
        # A sharded order is not a pipeline: the next micro-batch begins when the previous one has returned.
        together = 1 if order is PipelineOrder.SHARDED else micro_batches
        kind = Schedule1F1B if order is PipelineOrder.ONE_FORWARD_ONE_BACKWARD else ScheduleGPipe
        self._schedule = kind(there, together, loss_fn=_start_backward if trains else None, scale_grads=False)
        self._repetitions = micro_batches // together
        numbers = torch.zeros(together, device=device)
        self._arguments = (numbers,) if is_first else ()
        self._target = numbers if is_last and trains else None
        # Without backward nothing is sent back, and the first stage would run ahead.
        self._wait = pipeline_group.wait if order is PipelineOrder.SHARDED and not trains else None

    def run(self) -> None:
        """Pass one round through this stage."""
        for _ in range(self._repetitions):
            self._schedule.step(*self._arguments, target=self._target)
            if self._wait is not None:
                self._wait()


def _start_backward(result: Tensor, _: Tensor) -> Tensor:
    """The loss from which torch starts backward; the gradient of the real loss is part of the captured graph."""
    return result.sum()
