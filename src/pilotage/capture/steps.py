"""The steps of a program, as Python functions of flat tensors.

Traced, such a function becomes a graph; called directly, it is the eager tier. An inference step runs forward. A
training step goes from inputs to new weights. If gradients of several micro-batches are pooled, it is split in two: a
gradient step for each micro-batch and an update step at the end.
"""

from __future__ import annotations

import math
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
from pilotage.program.graphs.labels import LOSS, LOSS_SCALE, gradient_of, label
from pilotage.program.layout import Counter, Section, StateLayout, VariableValue
from pilotage.program.precision import without_autocast
from pilotage.program.step_function import NOT_FINITE, StepFunction
from pilotage.torch_private import ASSERT_ASYNC, foreach_add_, foreach_mul_, foreach_zero_


def _by_section(step: StepFunction, tensors: Sequence[Tensor]) -> list[Sequence[Tensor]]:
    """The tensors of each section, followed by the inputs."""
    parts = []
    start = 0
    for section in step.sections:
        end = start + len(step.layout.section(section))
        parts.append(tensors[start:end])
        start = end
    return [*parts, tensors[start:]]


@dataclass(frozen=True, kw_only=True)
class InferenceStep:
    """Runs forward."""

    model: Model
    sections: ClassVar[tuple[Section, ...]] = (Section.PARAMETERS, Section.BUFFERS)

    @property
    def layout(self) -> StateLayout:
        """The state that the step's sections belong to."""
        return self.model.layout

    @property
    def findings(self) -> Findings:
        """What running the module's forward has shown."""
        return self.model.findings

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        """Run the step."""
        parameters, buffers, inputs = _by_section(self, tensors)
        with self.model.using(parameters, buffers):
            return self.model.outputs_of(self.model.call(inputs), tensors)


@dataclass(frozen=True, kw_only=True)
class ForwardBackward:
    """Runs forward and backward, for training and gradient steps."""

    model: Model
    plan: OptimizerPlan
    loss_rule: LossRule = LossRule.RETURNED
    check_loss: bool = True
    divisor: int = 1
    """The loss is divided by this."""

    accumulates_on_leaves: bool = False
    """Accumulate gradients on the leaves: slower, but required by reentrant checkpoints."""

    copies_saved_buffers: bool = False
    """Save copies of buffers for backward, so that forward may write into them."""

    def run(
        self,
        parameters: Sequence[Tensor],
        buffers: Sequence[Tensor],
        counted: Sequence[Tensor],
        values: Sequence[Tensor],
        inputs: Sequence[Tensor],
    ) -> tuple[list[Tensor], dict[str, Tensor]]:
        """Return the outputs, and the gradient of each trained parameter that the loss depends on."""
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
                ASSERT_ASYNC(_is_finite(loss.value.detach()), NOT_FINITE)
            trained = {name: leaves[name] for name in model.layout.trained}
            scale = loss_scale(self.plan, _counters(model.layout, counted), _variables(model.layout, values))
            if isinstance(scale, Tensor) and self.plan.automatic_loss_scaling:
                label(scale, LOSS_SCALE)
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
        if loss.edge is None:
            return [None] * len(leaves)
        if not self.accumulates_on_leaves:
            return torch.autograd.grad(loss.edge, leaves, seed, allow_unused=True)
        torch.autograd.backward(loss.edge, seed)
        return [leaf.grad for leaf in leaves]


@dataclass(frozen=True, kw_only=True)
class ForwardBackwardStep:
    """Base of the steps that run forward and backward."""

    forward_backward: ForwardBackward

    @property
    def layout(self) -> StateLayout:
        """The state that the step's sections belong to."""
        return self.forward_backward.model.layout

    @property
    def findings(self) -> Findings:
        """What running the module's forward has shown."""
        return self.forward_backward.model.findings


@dataclass(frozen=True, kw_only=True)
class TrainingStep(ForwardBackwardStep):
    """Runs forward, backward and update."""

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
    """Runs forward and backward, and adds the gradients to those of earlier micro-batches."""

    instances: int = 1
    """The number of instances that average their pools; dividing while adding to the pool is free."""

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
    """Runs forward and backward, and returns gradients after the outputs, for stages that pool them."""

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
    """Updates parameters from pooled gradients, and resets the pools."""

    plan: OptimizerPlan
    layout: StateLayout
    divisors: Mapping[str, int]
    """The divisor of each parameter's pooled gradient."""

    findings: Findings
    """Findings of the gradient step: which parameters never get a gradient."""

    clips: bool = True
    """Whether to clip gradients here; not if other stages hold some of them."""

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
            foreach_zero_(list(pooled))
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
    """Add the gradients of one micro-batch, divided, to the pools.

    A running mean covers all replicas; parameters in ``summed`` have a copy per group of replicas and are summed
    instead.
    """
    if not gradients:
        return
    additions = {name: gradient.to(pools[name].dtype) for name, gradient in gradients.items()}
    if Counter.POOLED in counters:
        averaged = [name for name in additions if name not in summed]
        weighted = _weighted_for_mean(
            [pools[name] for name in averaged], [additions[name] for name in averaged], counters[Counter.POOLED]
        )
        additions |= zip(averaged, weighted, strict=True)
    targets = [pools[name] for name in additions]
    foreach_add_(targets, list(additions.values()), alpha=1 if divisor == 1 else 1 / divisor)


def _divided(pool: Tensor, divisor: int) -> Tensor:
    return pool / divisor if divisor > 1 else pool


def _weighted_for_mean(pools: list[Tensor], gradients: list[Tensor], pooled: Tensor) -> list[Tensor]:
    """Scale down running means for one more gradient, and return the weighted gradients."""
    weight = 1 / (pooled + 1)
    if pools:
        foreach_mul_(pools, (1 - weight).to(pools[0].dtype))
    pooled.add_(1)
    return [gradient * weight.to(gradient.dtype) for gradient in gradients]


def unchecked(step: StepFunction) -> StepFunction:
    """The same step without the check of its loss."""
    if isinstance(step, ForwardBackwardStep):
        return replace(step, forward_backward=replace(step.forward_backward, check_loss=False))
    return step


def _dense(gradient: Tensor) -> Tensor:
    return gradient.to_dense() if gradient.is_sparse else gradient


def _counters(layout: StateLayout, counted: Sequence[Tensor]) -> Mapping[Counter, Tensor]:
    return dict(zip(layout.counters, counted, strict=True))


def _variables(layout: StateLayout, values: Sequence[Tensor]) -> Mapping[VariableValue, Tensor]:
    return dict(zip(layout.values, values, strict=True))


def _is_finite(loss: Tensor) -> Tensor:
    """Whether a loss is finite, in as few operations as possible: every step runs them."""
    if loss.dim() or loss.is_complex():
        return torch.isfinite(loss).all()
    return loss.abs() < math.inf


def _seed(loss: Tensor, scale: Value, divisor: int) -> Any:
    ones = torch.ones_like(loss)
    seed = ones if isinstance(scale, float) and scale == 1.0 else ones * scale
    return _divided(seed, divisor)
