"""One update, or one round of inference, in eager PyTorch: what a program has to agree with.

The user's module runs as Python, autograd computes the gradients, and torch's own optimizer makes the update. Nothing
of the captured program is used.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from pilotage.arrival.limits import CheckLimits
from pilotage.arrival.module_copy import Skeleton
from pilotage.arrival.recurrent_dropout import DropoutOfTorch
from pilotage.arrival.returned_loss import returned_loss
from pilotage.arrival.update import update_eagerly
from pilotage.capture.loss.rules import search_by
from pilotage.capture.model import running_forward
from pilotage.execution.random_streams import RandomStreams
from pilotage.interrupts import INTERRUPTS
from pilotage.optim.rule import OptimizerPlan
from pilotage.options.batching import Batching
from pilotage.options.choices import LossRule, OutputMode, Reduction, ReplicaGrouping
from pilotage.program.layout import Slot
from pilotage.program.precision import without_autocast
from pilotage.program.structure import Parsers, Structure, flatten, unflatten

ShareGradients = Callable[[dict[str, Tensor]], None]
"""Sums gradients over all instances, in place."""


@dataclass(frozen=True, kw_only=True)
class Start:
    """The state that both the program and eager PyTorch begin with."""

    parameters: Mapping[str, Tensor]
    buffers: Mapping[int, Mapping[str, Tensor]]
    """The buffers of each replica."""

    slots: Mapping[Slot, Tensor]
    random: Sequence[Tensor]
    """The states of the random streams."""

    trainable: frozenset[str]
    """Parameters that require a gradient."""

    updates: float = 0.0
    """How many updates the optimizer has made."""


@dataclass(kw_only=True)
class Outcome:
    """What a step computes, in eager PyTorch or in a program."""

    outputs: list[Tensor] = field(default_factory=list)
    """What one call returns."""

    parameters: dict[str, Tensor] = field(default_factory=dict)
    buffers: dict[int, dict[str, Tensor]] = field(default_factory=dict)
    slots: dict[Slot, Tensor] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Reference:
    """How to repeat a step in eager PyTorch.

    Large because it names everything that the result depends on.
    """

    skeleton: Skeleton
    arguments: Structure
    """The structure of the pair (positional arguments, keyword arguments)."""

    parsers: Parsers
    plan: OptimizerPlan | None
    loss_rule: LossRule
    reduction: Reduction
    batching: Batching
    output_mode: OutputMode
    autocast: torch.dtype | None
    device: torch.device
    streams: RandomStreams
    constant_outputs: Sequence[int] = ()
    """Outputs that are the same for every micro-batch; a call returns each once."""

    share_gradients: ShareGradients | None = None
    """None if there is only one instance."""

    around_forward: Callable[[nn.Module], Any] = field(default=lambda module: nullcontext())
    """What a drop-in does around each forward."""

    def run(
        self,
        start: Start,
        batches: Sequence[Sequence[Tensor]],
        limits: CheckLimits | None = None,
        precision: torch.dtype | None = None,
    ) -> Outcome:
        """Run the steps of one update; with ``precision``, in another floating-point type."""
        convert = self._conversion(precision)
        leaves = {
            name: nn.Parameter(convert(tensor), requires_grad=name in start.trainable)
            for name, tensor in start.parameters.items()
        }
        first = {name: convert(tensor) for name, tensor in next(iter(start.buffers.values())).items()}
        tensors = {**leaves, **first}
        module = self.skeleton.filled(tensors, convert)
        buffers = {
            replica: {name: convert(tensor) for name, tensor in held.items()} for replica, held in start.buffers.items()
        }
        outputs: list[list[Tensor]] = []
        order = [
            (replica, round_ * (self.batching.replicas // self.batching.replicas_per_input) + self._input_of(replica))
            for round_ in range(self.batching.gradient_accumulation)
            for replica in range(self.batching.replicas)
        ]
        outcome = Outcome()
        with self._undisturbed(start) as draws, self.around_forward(module), self.skeleton.stand_ins(tensors):
            for number, (replica, position) in enumerate(order):
                inputs = _converted(batches[position], convert)
                with draws.of_replica(replica):
                    _put_buffers(module, buffers[replica])
                    outputs.append(self._run_micro_batch(module, inputs, limits, len(order) - number))
                    buffers[replica] = _buffers_of(module)
            outcome.outputs = combined(outputs, self.output_mode, self.batching.replicas, self.constant_outputs)
            outcome.buffers = buffers
            if self.plan is not None:
                self._update(self.plan, leaves, start, outcome)
        return outcome

    def _input_of(self, replica: int) -> int:
        """Which input of a round a replica reads."""
        if self.batching.input_grouping is ReplicaGrouping.CONSECUTIVE:
            return replica // self.batching.replicas_per_input
        return replica % (self.batching.replicas // self.batching.replicas_per_input)

    def _run_micro_batch(
        self, module: nn.Module, inputs: Sequence[Tensor], limits: CheckLimits | None, remaining: int
    ) -> list[Tensor]:
        begun = time.perf_counter()
        with search_by(self.loss_rule, self.parsers) as search, _watched(limits):
            positional, named = unflatten(self.arguments, inputs)
            # Forward may take long. What it leaves half done is a copy, and what surrounds it is put back.
            # Parts that torch.compile has wrapped would be compiled first, for minutes.
            with (
                self._casting(),
                running_forward(),
                INTERRUPTS.open(),
                torch.compiler.set_stance("force_eager"),
                DropoutOfTorch(),
            ):
                value = module(*positional, **named)
        tensors, _ = flatten(value, self.parsers)
        outputs = [tensor.detach().clone() for tensor in tensors]
        if limits is not None:
            limits.check_time(self.device, begun, remaining, trains=self.plan is not None)
        if self.plan is None:
            return outputs
        loss = returned_loss(value, self.parsers) if self.loss_rule is LossRule.RETURNED else None
        with without_autocast(self.device.type):
            if loss is not None and not search.has_marks:
                loss.backward()
            else:
                root = search.root(value)
                if root.edge is not None:
                    torch.autograd.backward(root.edge, torch.ones_like(root.value))
        search.forget()
        INTERRUPTS.deliver_pending()
        return outputs

    @torch.no_grad()
    def _update(self, plan: OptimizerPlan, leaves: Mapping[str, Tensor], start: Start, outcome: Outcome) -> None:
        gradients = {name: _dense(leaf.grad) for name, leaf in leaves.items() if leaf.grad is not None}
        if self.share_gradients is not None:
            self.share_gradients(gradients)
        if self.reduction is Reduction.MEAN:
            batching = self.batching
            count = batching.gradient_accumulation * batching.replicas * batching.instances
            gradients = {name: each / count for name, each in gradients.items()}
        parameters = {name: leaf.detach() for name, leaf in leaves.items()}
        outcome.slots = update_eagerly(plan, parameters, gradients, start.slots, start.updates)
        outcome.parameters = parameters

    def _conversion(self, precision: torch.dtype | None) -> Callable[[Tensor], Tensor]:
        def convert(tensor: Tensor) -> Tensor:
            wanted = precision if precision is not None and tensor.is_floating_point() else tensor.dtype
            return tensor.detach().to(self.device, wanted, copy=True)

        return convert

    @contextmanager
    def _casting(self) -> Iterator[None]:
        kind = self.device.type
        if self.autocast is None:
            with without_autocast(kind):
                yield
        else:
            with torch.autocast(kind, self.autocast):
                yield

    @contextmanager
    def _undisturbed(self, start: Start) -> Iterator[_Draws]:
        """Draw random numbers as the step does, and leave torch's settings and the random streams as they are."""
        before = self.streams.states
        with ExitStack() as stack:
            stack.enter_context(torch.inference_mode(False))
            stack.enter_context(torch.enable_grad())
            if self.device.type != "cpu":
                # Forward creates its own tensors where it runs.
                stack.enter_context(torch.device(self.device))
            try:
                self.streams.states = start.random
                yield _Draws(self.device, start.random, shared=self.streams.shared)
            finally:
                self.streams.states = before


class _Draws:
    """Draws for each replica what its stream has next."""

    def __init__(self, device: torch.device, states: Sequence[Tensor], *, shared: bool) -> None:
        self._device = device
        self._states = dict(enumerate(states))
        self._shared = shared

    @contextmanager
    def of_replica(self, replica: int) -> Iterator[None]:
        """Let torch draw from a replica's stream."""
        if self._shared:
            yield
            return
        rng = torch if self._device.type == "cpu" else torch.get_device_module(self._device)
        outside = rng.get_rng_state()
        rng.set_rng_state(self._states[replica])
        try:
            yield
            self._states[replica] = rng.get_rng_state()
        finally:
            rng.set_rng_state(outside)


def combined(
    outputs: Sequence[list[Tensor]], mode: OutputMode, replicas: int, constants: Sequence[int]
) -> list[Tensor]:
    """The outputs of one update's micro-batches as a call returns them."""
    match mode:
        case OutputMode.FINAL:
            parts = list(outputs[-replicas:])
        case OutputMode.SUM:
            parts = [
                [_sum(each) for each in zip(*outputs[replica::replicas], strict=True)] for replica in range(replicas)
            ]
        case OutputMode.ALL | OutputMode.EVERY_N:
            parts = list(outputs)
    if len(parts) == 1:
        joined = list(parts[0])
    else:
        joined = [torch.stack(each) if each[0].dim() == 0 else torch.cat(each) for each in zip(*parts, strict=True)]
    for position in constants:
        joined[position] = outputs[0][position]
    return joined


def _sum(tensors: Sequence[Tensor]) -> Tensor:
    stacked = torch.stack(list(tensors))
    return stacked.any(0) if stacked.dtype == torch.bool else stacked.sum(0, dtype=stacked.dtype)


def _converted(inputs: Sequence[Tensor], convert: Callable[[Tensor], Tensor]) -> list[Tensor]:
    """The inputs of a micro-batch; a tensor that is passed twice stays one."""
    made: dict[tuple[int, torch.Size], Tensor] = {}
    for tensor in inputs:
        if (tensor.data_ptr(), tensor.shape) not in made:
            made[tensor.data_ptr(), tensor.shape] = convert(tensor)
    return [made[tensor.data_ptr(), tensor.shape] for tensor in inputs]


def _put_buffers(module: nn.Module, buffers: Mapping[str, Tensor]) -> None:
    with torch.no_grad():
        for name, buffer in module.named_buffers():
            if buffer is not buffers[name]:
                buffer.copy_(buffers[name])


def _buffers_of(module: nn.Module) -> dict[str, Tensor]:
    return {name: buffer.detach().clone() for name, buffer in module.named_buffers()}


def _dense(gradient: Tensor) -> Tensor:
    return gradient.to_dense() if gradient.is_sparse else gradient


def _watched(limits: CheckLimits | None) -> Any:
    return nullcontext() if limits is None else limits.of_saved_tensors()
