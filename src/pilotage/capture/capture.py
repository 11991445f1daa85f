"""Captures a module, its loss and its optimizer as a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import nn

from pilotage.capture.attributes import AttributeWatch
from pilotage.capture.constant_outputs import constant_outputs
from pilotage.capture.functions.patched_modules import patched_modules
from pilotage.capture.model import Model, refuse_unequal_buffers
from pilotage.capture.module_state import refuse_outside_views, refuse_overlaps
from pilotage.capture.saved_buffers import is_written_too_early
from pilotage.capture.steps import (
    ForwardBackward,
    GradientStep,
    InferenceStep,
    SeparateGradientStep,
    TrainingStep,
    UpdateStep,
)
from pilotage.capture.tracing import Trace, trace
from pilotage.errors import CaptureError
from pilotage.optim.rule import OptimizerPlan
from pilotage.options.batching import Batching
from pilotage.options.choices import LossRule, Pooling, Reduction
from pilotage.program.graphs.labels import add_label, input_number
from pilotage.program.layout import ReplicaGroups, StateLayout
from pilotage.program.optimizer_shards import OptimizerShards
from pilotage.program.precision import autocast_type
from pilotage.program.program import Action, Computation, Program
from pilotage.program.specification import TensorSpec
from pilotage.program.step_function import StepFunction
from pilotage.program.structure import Parsers, Structure


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to capture.

    Large because it is the one place where capture reads options.
    """

    module: nn.Module
    arguments: Structure
    """The structure of the pair (positional arguments, keyword arguments) of a call."""

    inputs: Sequence[TensorSpec]
    """The tensors of one micro-batch."""

    modes: Mapping[nn.Module, bool]
    plan: OptimizerPlan | None
    """The optimizer to train with; None captures inference."""

    batching: Batching
    reduction: Reduction = Reduction.MEAN
    pooling: Pooling = Pooling.POST
    replica_groups: Mapping[str, ReplicaGroups] = field(default_factory=dict)
    """Parameters that have several copies, and which replica uses which copy."""

    loss_rule: LossRule = LossRule.RETURNED
    check_loss: bool = True
    broadcast_buffers: bool = False
    """Require buffers to be equal in all replicas and instances."""

    attributes_once: bool = False
    """Let forward change plain tensor attributes once, at capture."""

    optimizer_shards: OptimizerShards | None = None
    """Which instance updates which parameter; None if each instance updates all."""

    slots_on_host: int | None = None
    """Keep optimizer state of at least this many elements on the host; updates are then separate from backward."""

    separate_gradients: bool = False
    """Return gradients instead of pooling them, for a program that will be cut into stages."""

    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    parsers: Parsers = field(default_factory=dict)

    @property
    def pools(self) -> Pooling:
        """How gradients are pooled; the sum of an update's gradients is never a mean."""
        return self.pooling if self.reduction is Reduction.MEAN else Pooling.POST

    @property
    def separates_updates(self) -> bool:
        """Whether the update is a separate step even if it follows each micro-batch."""
        return self.separate_gradients or self.slots_on_host is not None


def capture(request: Request) -> Program:
    """Run the module's forward once and record the whole step as graphs."""
    model = _model(request)
    steps = _steps(request, model)
    try:
        traces = _traces(steps, request)
    except RuntimeError as error:
        accumulates_on_leaves, written = "use_reentrant=True" in str(error), is_written_too_early(error)
        if not (accumulates_on_leaves or written):
            raise
        steps = _steps(request, model, accumulates_on_leaves=accumulates_on_leaves, copies_saved_buffers=written)
        traces = _traces(steps, request)
    first = next(iter(steps))
    _label_arguments(steps[first], traces[first])
    written_buffers = _written_buffers(steps[first], traces[first])
    if _promises_equal_buffers(request):
        refuse_unequal_buffers(written_buffers)
    refuse_outside_views(request.module, {*model.layout.trained, *written_buffers}, traces[first].graph)
    return Program(
        layout=model.layout,
        computations={
            action: Computation(
                sections=step.sections, function=step, graph=traces[action].graph, whole=isinstance(step, UpdateStep)
            )
            for action, step in steps.items()
        },
        arguments=request.arguments,
        inputs=tuple(request.inputs),
        outputs=model.findings.outputs,
        constant_outputs=constant_outputs(traces[first].graph),
        gradients=_returned_gradients(model) if request.separate_gradients and request.plan is not None else (),
        plan=request.plan,
        written_inputs=_written_inputs(steps[first], traces[first]),
        written_buffers=written_buffers,
        reassigned_buffers=model.findings.reassigned_buffers,
        draws_random_numbers=any(traced.draws_random_numbers for traced in traces.values()),
        autocast=autocast_type(request.device.type),
        checks_loss=request.check_loss and request.plan is not None,
        warnings=traces[first].warnings,
    )


def uncaptured(request: Request) -> Program:
    """The same program without graphs, for the eager tier."""
    model = replace(
        _model(request),
        equal_buffers=_promises_equal_buffers(request),
        follows_data=request.batching.device_iterations * request.batching.micro_batches_per_update > 1,
    )
    steps = _steps(request, model, accumulates_on_leaves=True)
    return Program(
        layout=_layout(request),
        computations={
            action: Computation(sections=step.sections, function=step, whole=isinstance(step, UpdateStep))
            for action, step in steps.items()
        },
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
        layout=_layout(request),
        modes=request.modes,
        parsers=request.parsers,
    )


def _returned_gradients(model: Model) -> tuple[str, ...]:
    return tuple(name for name in model.layout.trained if name not in model.findings.without_gradient)


def _promises_equal_buffers(request: Request) -> bool:
    return request.broadcast_buffers and request.batching.replicas * request.batching.instances > 1


def _layout(request: Request) -> StateLayout:
    layout = StateLayout.of(request.module, request.plan, pooling=request.pools, replica_groups=request.replica_groups)
    refuse_overlaps(request.module, layout)
    layout = replace(layout, slots_on_host=request.slots_on_host)
    return layout if request.optimizer_shards is None else request.optimizer_shards.layout(layout)


def _steps(
    request: Request, model: Model, *, accumulates_on_leaves: bool = False, copies_saved_buffers: bool = False
) -> dict[Action, StepFunction]:
    """The steps that a schedule of this request runs; the first one runs forward."""
    plan, layout = request.plan, model.layout
    if plan is None:
        return {Action.INFER: InferenceStep(model=model)}
    divides = request.reduction is Reduction.MEAN
    by_loss = divides and request.pooling is Pooling.POST_AND_LOSS
    forward_backward = ForwardBackward(
        model=model,
        plan=plan,
        loss_rule=request.loss_rule,
        check_loss=request.check_loss,
        divisor=request.batching.gradient_accumulation if by_loss else 1,
        accumulates_on_leaves=accumulates_on_leaves,
        copies_saved_buffers=copies_saved_buffers,
    )
    if request.batching.micro_batches_per_update == 1 and not request.separates_updates:
        return {Action.TRAIN: TrainingStep(forward_backward=forward_backward)}
    _refuse_complex_pools(layout)
    instances = request.batching.instances if divides else 1
    return {
        Action.ACCUMULATE: SeparateGradientStep(forward_backward=forward_backward)
        if request.separate_gradients
        else GradientStep(forward_backward=forward_backward, instances=instances),
        Action.UPDATE: UpdateStep(
            plan=plan if request.optimizer_shards is None else request.optimizer_shards.plan(plan),
            layout=layout,
            divisors={name: _divisor(request, name) if divides else 1 for name in layout.trained},
            findings=model.findings,
        ),
    }


def _refuse_complex_pools(layout: StateLayout) -> None:
    for name in layout.trained:
        if layout.parameters[name].dtype.is_complex:
            raise CaptureError(
                f"The parameter '{name}' is complex, but gradients of several micro-batches are pooled as real "
                "numbers. Train it without gradient accumulation and replicas, or use separate real and imaginary "
                "parameters."
            )


def _divisor(request: Request, parameter: str) -> int:
    """What to divide a parameter's pooled gradient by at an update."""
    groups = request.replica_groups.get(parameter)
    # A gradient step already divides by the number of instances.
    instances = request.batching.instances if request.separate_gradients else 1
    replicas = request.batching.replicas * instances if groups is None else groups.members
    match request.pools:
        case Pooling.RUNNING if groups is None:
            # The pool of each instance is already a mean, and the pools are summed.
            return instances
        case Pooling.POST_AND_LOSS:
            return replicas
        case Pooling.POST | Pooling.RUNNING:
            return request.batching.gradient_accumulation * replicas


def _traces(steps: Mapping[Action, StepFunction], request: Request) -> dict[Action, Trace]:
    return {action: _trace(step, request) for action, step in steps.items()}


def _trace(step: StepFunction, request: Request) -> Trace:
    inputs = () if isinstance(step, UpdateStep) else request.inputs
    whole = isinstance(step, UpdateStep)
    state = [spec for section in step.sections for spec in step.layout.section(section, whole=whole)]
    with patched_modules(request.module):
        watch = None if isinstance(step, UpdateStep) else AttributeWatch(request.module, once=request.attributes_once)
        return trace(step, [*state, *inputs], request.device, watch)


def _label_arguments(step: StepFunction, traced: Trace) -> None:
    arguments = [node for node in traced.graph.graph.nodes if node.op == "placeholder"]
    # Every step that runs forward begins with parameters and buffers.
    for name, node in zip((*step.layout.parameters, *step.layout.buffers), arguments, strict=False):
        add_label(node, name)
    state = sum(len(step.layout.section(section)) for section in step.sections)
    for position, node in enumerate(arguments[state:]):
        add_label(node, input_number(position))


def _written_inputs(step: StepFunction, traced: Trace) -> tuple[int, ...]:
    state = sum(len(step.layout.section(section)) for section in step.sections)
    return tuple(sorted(position - state for position in traced.written if position >= state))


def _written_buffers(step: StepFunction, traced: Trace) -> tuple[str, ...]:
    # Every step that runs forward begins with parameters and buffers.
    start = len(step.layout.parameters)
    return tuple(name for position, name in enumerate(step.layout.buffers, start) if position in traced.written)
