"""Turning a module, its loss and its optimizer into a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import nn

from pilotage.optim.rule import OptimizerPlan
from pilotage.options.batching import Batching
from pilotage.options.choices import Reduction
from pilotage.program.attributes import AttributeWatch
from pilotage.program.layout import StateLayout
from pilotage.program.model import Model
from pilotage.program.precision import autocast_type
from pilotage.program.program import Action, Computation, Program
from pilotage.program.specification import TensorSpec
from pilotage.program.steps import (
    Gradients,
    GradientStep,
    InferenceStep,
    StepFunction,
    TrainingStep,
    UpdateStep,
)
from pilotage.program.structure import Parsers, Structure
from pilotage.program.tracing import Trace, trace


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is to be captured."""

    module: nn.Module
    arguments: Structure
    """Of the pair (positional arguments, keyword arguments) of a call."""

    inputs: Sequence[TensorSpec]
    """The tensors of one micro-batch."""

    modes: Mapping[nn.Module, bool]
    plan: OptimizerPlan | None
    """How to train; None captures inference."""

    batching: Batching
    reduction: Reduction = Reduction.MEAN
    check_loss: bool = True
    broadcast_buffers: bool = True
    """Replicas are promised equal buffers."""

    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    parsers: Parsers = field(default_factory=dict)


def capture(request: Request) -> Program:
    """Run the module's forward once and write down the whole step as graphs."""
    model = _model(request)
    steps = _steps(request, model)
    try:
        traces = {action: _trace(step, request) for action, step in steps.items()}
    except RuntimeError as error:
        if "use_reentrant=True" not in str(error):
            raise
        steps = _steps(request, model, through_leaves=True)
        traces = {action: _trace(step, request) for action, step in steps.items()}
    first = next(iter(steps))
    return Program(
        layout=model.layout,
        computations={
            action: Computation(sections=step.sections, function=step, graph=traces[action].graph)
            for action, step in steps.items()
        },
        arguments=request.arguments,
        inputs=tuple(request.inputs),
        outputs=model.findings.outputs,
        plan=request.plan,
        written_inputs=_written_inputs(steps[first], traces[first]),
        written_buffers=_written_buffers(steps[first], traces[first]),
        reassigned_buffers=model.findings.reassigned_buffers,
        draws_random_numbers=traces[first].draws_random_numbers,
        autocast=autocast_type(request.device.type),
        checks_loss=request.check_loss and request.plan is not None,
        warnings=traces[first].warnings,
    )


def uncaptured(request: Request) -> Program:
    """The same program with its Python left as it is: the eager tier."""
    steps = _steps(request, _model(request), through_leaves=True)
    return Program(
        layout=StateLayout.of(request.module, request.plan),
        computations={action: Computation(sections=step.sections, function=step) for action, step in steps.items()},
        arguments=request.arguments,
        inputs=tuple(request.inputs),
        outputs=None,
        plan=request.plan,
        written_inputs=tuple(range(len(request.inputs))),
        written_buffers=tuple(name for name, _ in request.module.named_buffers()),
        draws_random_numbers=True,
        autocast=autocast_type(request.device.type),
        checks_loss=request.check_loss and request.plan is not None,
    )


def _model(request: Request) -> Model:
    return Model(
        module=request.module,
        arguments=request.arguments,
        layout=StateLayout.of(request.module, request.plan),
        modes=request.modes,
        equal_buffers=request.broadcast_buffers and request.batching.replicas > 1,
        parsers=request.parsers,
    )


def _steps(request: Request, model: Model, *, through_leaves: bool = False) -> dict[Action, StepFunction]:
    """The steps that a schedule of this request needs; the first one runs forward."""
    plan, layout = request.plan, model.layout
    if plan is None:
        return {Action.INFER: InferenceStep(model=model, layout=layout)}
    gradients = Gradients(model=model, plan=plan, check_loss=request.check_loss, through_leaves=through_leaves)
    pooled = request.batching.micro_batches_per_update
    if pooled == 1:
        return {Action.TRAIN: TrainingStep(gradients=gradients, layout=layout)}
    return {
        Action.ACCUMULATE: GradientStep(gradients=gradients, layout=layout),
        Action.UPDATE: UpdateStep(
            plan=plan,
            layout=layout,
            divisor=pooled if request.reduction is Reduction.MEAN else 1,
            findings=model.findings,
        ),
    }


def _trace(step: StepFunction, request: Request) -> Trace:
    inputs = () if isinstance(step, UpdateStep) else request.inputs
    watch = None if isinstance(step, UpdateStep) else AttributeWatch(request.module)
    state = [specification for section in step.sections for specification in step.layout.section(section)]
    return trace(step, [*state, *inputs], request.device, watch)


def _written_inputs(step: StepFunction, traced: Trace) -> tuple[int, ...]:
    state = sum(len(step.layout.section(section)) for section in step.sections)
    return tuple(sorted(position - state for position in traced.written if position >= state))


def _written_buffers(step: StepFunction, traced: Trace) -> tuple[str, ...]:
    # Parameters and buffers are the first two sections of every step that runs forward.
    start = len(step.layout.parameters)
    return tuple(name for position, name in enumerate(step.layout.buffers, start) if position in traced.written)
