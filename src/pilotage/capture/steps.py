"""One step of a program, as a Python function of flat tensors.

Traced, such a function becomes a graph; called as it is, it is the eager tier. There are four kinds: an inference
step; a training step that goes from inputs to new weights; and, where gradients of several micro-batches are pooled,
the same cut in two: a gradient step for each micro-batch and an update step at the end.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from pilotage.capture.loss.rules import search_by
from pilotage.capture.loss.search import Loss
from pilotage.capture.loss_scaling import loss_scale
from pilotage.capture.model import Findings, Model
from pilotage.capture.saved_buffers import buffers_kept_for_backward
from pilotage.capture.update import update
from pilotage.optim.rule import OptimizerPlan, Value
from pilotage.options.choices import LossRule
from pilotage.program.graphs.forward_marks import end_of_forward
from pilotage.program.graphs.labels import LOSS, gradient_of, label
from pilotage.program.layout import Counter, Section, StateLayout, VariableValue
from pilotage.program.precision import without_autocast
from pilotage.program.step_function import NOT_FINITE, StepFunction


def _by_section(step: StepFunction, tensors: Sequence[Tensor]) -> list[Sequence[Tensor]]:
    """The tensors of each section, and what is left: the inputs."""
    parts = []
    start = 0
    for section in step.sections:
        end = start + len(step.layout.section(section))
        parts.append(tensors[start:end])
        start = end
    return [*parts, tensors[start:]]


@dataclass(frozen=True, kw_only=True)
class InferenceStep:
    """Forward alone."""

    model: Model
    sections: ClassVar[tuple[Section, ...]] = (Section.PARAMETERS, Section.BUFFERS)

    @property
    def layout(self) -> StateLayout:
        """The state that the step's sections belong to."""
        return self.model.layout

    @property
    def findings(self) -> Findings:
        """What running the module's forward has taught."""
        return self.model.findings

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        """Run the step."""
        parameters, buffers, inputs = _by_section(self, tensors)
        with self.model.using(parameters, buffers):
            return self.model.outputs_of(self.model.call(inputs), tensors)


@dataclass(frozen=True, kw_only=True)
class ForwardBackward:
    """Forward and backward, as training and gradient steps share them."""

    model: Model
    plan: OptimizerPlan
    loss_rule: LossRule = LossRule.RETURNED
    check_loss: bool = True
    divisor: int = 1
    """What the loss is divided by."""

    accumulates_on_leaves: bool = False
    """Collect gradients on the leaves: slower, but the one way through reentrant checkpoints."""

    copies_saved_buffers: bool = False
    """Let forward write into a buffer that backward needs as it was."""

    def run(
        self,
        parameters: Sequence[Tensor],
        buffers: Sequence[Tensor],
        counted: Sequence[Tensor],
        values: Sequence[Tensor],
        inputs: Sequence[Tensor],
    ) -> tuple[list[Tensor], dict[str, Tensor]]:
        """The outputs, and the gradient of each trained parameter that the loss depends on."""
        model = self.model
        with model.using(parameters, buffers) as leaves:
            is_first_run = model.findings.outputs is None
            with search_by(self.loss_rule, model.parsers) as search, self._saving(buffers):
                value = model.call(inputs)
            outputs = model.outputs_of(value, (*parameters, *buffers, *inputs))
            end_of_forward()
            loss = search.root(value)
            if is_first_run:
                model.findings.dropped_work = search.dropped_work(loss, value)
            label(loss.value, LOSS)
            if self.check_loss:
                torch.ops.aten._assert_async.msg(torch.isfinite(loss.value.detach()).all(), NOT_FINITE)
            trained = {name: leaves[name] for name in model.layout.trained}
            scale = loss_scale(self.plan, _counters(model.layout, counted), _variables(model.layout, values))
            with without_autocast(loss.value.device.type):
                gradients = self._backward(loss, _seed(loss.value, scale, self.divisor), list(trained.values()))
        found = {name: gradient for name, gradient in zip(trained, gradients, strict=True) if gradient is not None}
        for name, gradient in found.items():
            label(gradient, gradient_of(name))
        model.findings.without_gradient = tuple(name for name in trained if name not in found)
        return outputs, {name: _dense(gradient.detach()) for name, gradient in found.items()}

    def _saving(self, buffers: Sequence[Tensor]) -> AbstractContextManager[object]:
        return buffers_kept_for_backward(buffers) if self.copies_saved_buffers else nullcontext()

    def _backward(self, loss: Loss, seed: Tensor, leaves: list[Tensor]) -> Sequence[Tensor | None]:
        assert loss.edge is not None
        if not self.accumulates_on_leaves:
            return torch.autograd.grad(loss.edge, leaves, seed, allow_unused=True)
        torch.autograd.backward(loss.edge, seed)
        return [leaf.grad for leaf in leaves]


@dataclass(frozen=True, kw_only=True)
class ForwardBackwardStep:
    """What the steps that run forward and backward have in common."""

    forward_backward: ForwardBackward

    @property
    def layout(self) -> StateLayout:
        """The state that the step's sections belong to."""
        return self.forward_backward.model.layout

    @property
    def findings(self) -> Findings:
        """What running the module's forward has taught."""
        return self.forward_backward.model.findings


@dataclass(frozen=True, kw_only=True)
class TrainingStep(ForwardBackwardStep):
    """Forward, backward and update in one."""

    sections: ClassVar[tuple[Section, ...]] = (
        Section.PARAMETERS,
        Section.BUFFERS,
        Section.SLOTS,
        Section.COUNTERS,
        Section.VALUES,
    )

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        """Run the step."""
        parameters, buffers, slots, counted, values, inputs = _by_section(self, tensors)
        outputs, gradients = self.forward_backward.run(parameters, buffers, counted, values, inputs)
        update(
            self.forward_backward.plan,
            dict(zip(self.layout.parameters, parameters, strict=True)),
            gradients,
            dict(zip(self.layout.slots, slots, strict=True)),
            _counters(self.layout, counted),
            _variables(self.layout, values),
        )
        return outputs


@dataclass(frozen=True, kw_only=True)
class GradientStep(ForwardBackwardStep):
    """Forward and backward; gradients are added to those of earlier micro-batches."""

    instances: int = 1
    """How many instances add up their pools to a mean; here, on the way into the pool, dividing costs nothing."""

    sections: ClassVar[tuple[Section, ...]] = (
        Section.PARAMETERS,
        Section.BUFFERS,
        Section.COUNTERS,
        Section.VALUES,
        Section.GRADIENTS,
    )

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        """Run the step."""
        parameters, buffers, counted, values, pooled, inputs = _by_section(self, tensors)
        outputs, gradients = self.forward_backward.run(parameters, buffers, counted, values, inputs)
        pools = dict(zip(self.layout.trained, pooled, strict=True))
        pool(
            pools, gradients, _counters(self.layout, counted), divisor=self.instances, summed=self.layout.replica_groups
        )
        return outputs


@dataclass(frozen=True, kw_only=True)
class SeparateGradientStep(ForwardBackwardStep):
    """Forward and backward; gradients come behind the outputs, for stages that pool them where the weights are."""

    sections: ClassVar[tuple[Section, ...]] = (
        Section.PARAMETERS,
        Section.BUFFERS,
        Section.COUNTERS,
        Section.VALUES,
    )

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        """Run the step."""
        parameters, buffers, counted, values, inputs = _by_section(self, tensors)
        outputs, gradients = self.forward_backward.run(parameters, buffers, counted, values, inputs)
        return [*outputs, *gradients.values()]


@dataclass(frozen=True, kw_only=True)
class UpdateStep:
    """The update from pooled gradients, which are zero again afterwards."""

    plan: OptimizerPlan
    layout: StateLayout
    divisors: Mapping[str, int]
    """What the pooled gradients of each parameter are divided by."""

    findings: Findings
    """Of the gradient step: which parameters never get a gradient."""

    clips: bool = True
    """Whether the norm of all gradients is bounded here; not where other stages have a part of them."""

    sections: ClassVar[tuple[Section, ...]] = (
        Section.PARAMETERS,
        Section.SLOTS,
        Section.COUNTERS,
        Section.VALUES,
        Section.GRADIENTS,
    )

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        """Run the step."""
        parameters, slots, counted, values, pooled, _ = _by_section(self, tensors)
        counters = _counters(self.layout, counted)
        held = dict(zip(self.layout.parameters, parameters, strict=True))
        gradients = {
            name: _divided(pool, self.divisors[name]).to(held[name].dtype)
            for name, pool in zip(self.layout.trained, pooled, strict=True)
            if name not in self.findings.without_gradient
        }
        slots_by_name = dict(zip(self.layout.slots, slots, strict=True))
        update(self.plan, held, gradients, slots_by_name, counters, _variables(self.layout, values), clips=self.clips)
        if pooled:
            torch._foreach_zero_(list(pooled))
        if Counter.POOLED in counters:
            counters[Counter.POOLED].zero_()
        return []


def pool(
    pools: Mapping[str, Tensor],
    gradients: Mapping[str, Tensor],
    counters: Mapping[Counter, Tensor],
    *,
    divisor: int = 1,
    summed: Container[str] = (),
) -> None:
    """Add the gradients of one micro-batch, divided, to those of earlier ones.

    A running mean takes in those of all replicas, which the ones to be summed do not get: each group of replicas has its own.
    """
    if not gradients:
        return
    additions = {name: gradient.to(pools[name].dtype) for name, gradient in gradients.items()}
    if Counter.POOLED in counters:
        averaged = [name for name in additions if name not in summed]
        shares = _share_of_mean(
            [pools[name] for name in averaged], [additions[name] for name in averaged], counters[Counter.POOLED]
        )
        additions |= zip(averaged, shares, strict=True)
    targets = [pools[name] for name in additions]
    torch._foreach_add_(targets, list(additions.values()), alpha=1 if divisor == 1 else 1 / divisor)


def _divided(pool: Tensor, divisor: int) -> Tensor:
    return pool / divisor if divisor > 1 else pool


def _share_of_mean(pools: list[Tensor], gradients: list[Tensor], pooled: Tensor) -> list[Tensor]:
    """Make room in a running mean for one more gradient, and take that gradient's share of it."""
    share = 1 / (pooled + 1)
    if pools:
        torch._foreach_mul_(pools, (1 - share).to(pools[0].dtype))
    pooled.add_(1)
    return [gradient * share.to(gradient.dtype) for gradient in gradients]


def unchecked(step: StepFunction) -> StepFunction:
    """The same step, without a look at its loss."""
    if isinstance(step, ForwardBackwardStep):
        return replace(step, forward_backward=replace(step.forward_backward, check_loss=False))
    return step


def _dense(gradient: Tensor) -> Tensor:
    return gradient.to_dense() if gradient.is_sparse else gradient


def _counters(layout: StateLayout, counted: Sequence[Tensor]) -> Mapping[Counter, Tensor]:
    return dict(zip(layout.counters, counted, strict=True))


def _variables(layout: StateLayout, values: Sequence[Tensor]) -> Mapping[VariableValue, Tensor]:
    return dict(zip(layout.values, values, strict=True))


def _seed(loss: Tensor, scale: Value, divisor: int) -> Any:
    ones = torch.ones_like(loss)
    seed = ones if isinstance(scale, float) and scale == 1.0 else ones * scale
    return _divided(seed, divisor)
