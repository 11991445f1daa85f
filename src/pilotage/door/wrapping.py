"""`pilotage.training` and `pilotage.inference`: every option is an argument."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from pilotage.distributed.peers import peers_here
from pilotage.distributed.pipeline_group import pipeline_group_here
from pilotage.door.arguments import require_loss, require_module, require_optimizer
from pilotage.door.caches import without_caches
from pilotage.door.compiled_model import CompiledModel
from pilotage.door.keywords import suggesting
from pilotage.door.settings import execution
from pilotage.door.with_loss import WithLoss
from pilotage.events import Listener
from pilotage.logs import log_event
from pilotage.optim.family import Refinements
from pilotage.optim.following import FollowedOptimizer
from pilotage.options.check import OnMismatch
from pilotage.options.choices import (
    Accumulation,
    NonFiniteLoss,
    OutputMode,
    PipelineOrder,
    Pooling,
    Recomputation,
    Reduction,
    ReplicaGrouping,
    Tier,
)
from pilotage.options.clipping import clipping
from pilotage.options.locations import Locations
from pilotage.runtime.host_steps import HostSteps
from pilotage.runtime.shapes.executor import ShapedExecutor

_REMEDY = (
    "Leave out optimizer.step(), together with zero_grad() and backward(). To train with another optimizer, give it to "
    "pilotage.training or set_optimizer()."
)

_NOT_MOVED = Locations()


@suggesting
def training(
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    loss: Callable[[Any, Any], Tensor] | None = None,
    distributed: bool = False,
    listeners: Iterable[Listener] = (),
    clip_grad_norm: float | None = None,
    clip_grad_value: float | None = None,
    device_iterations: int = 1,
    gradient_accumulation: int = 1,
    replicas: int = 1,
    replicas_per_input: int = 1,
    input_grouping: str | ReplicaGrouping = ReplicaGrouping.CONSECUTIVE,
    outputs: str | OutputMode | None = None,
    output_period: int = 1,
    reduction: str | Reduction = Reduction.MEAN,
    pooling: str | Pooling = Pooling.POST,
    seed: int | None = None,
    broadcast_buffers: bool = False,
    attributes_once: bool = False,
    nonfinite_loss: str | NonFiniteLoss = NonFiniteLoss.WARN,
    backend: str | None = None,
    cards: Sequence[str] | None = None,
    tier: str | Tier | None = None,
    cache_directory: str | Path | None = None,
    check: str | int | None = None,
    on_mismatch: str | OnMismatch = OnMismatch.RAISE,
    accumulation: str | Accumulation | None = None,
    recomputation: str | Recomputation = Recomputation.MARKED,
    locations: Locations | Mapping[str, int | None] = _NOT_MOVED,
    pipeline: str | PipelineOrder | None = None,
    synthetic_inputs: bool = False,
    anchors: Sequence[str] = (),
    shapes: int = 8,
    name: str | None = None,
) -> CompiledModel:
    """Wrap a module so that each call trains it: forward, loss, backward and update in one captured program.

    With ``loss`` the last argument of each call is the target, and a call returns (output, loss). Without it, the loss
    is what forward returns: the only scalar among its outputs that requires a gradient, or the entry ``loss`` of a
    dictionary, data class or named tuple, such as a Hugging Face output. If there is no scalar, a tensor of one element
    counts, as for ``backward()``. `pilotage.mark_loss` inside forward overrides both, and then the loss need not be
    returned. No loss, or more than one, is a `LossError`.

    The optimizer's ``param_groups`` are read at every call, so learning-rate schedules work as in eager PyTorch.

    :param distributed: Share every update with the other instances that poprun, torchrun, mpirun or srun has started,
        and a model of several stages (`pilotage.enter_stage`) with the other processes of this instance.
    :param listeners: Functions that get every event of `pilotage.events`.
    :param clip_grad_norm: Limit the norm of all gradients of an update together, as ``clip_grad_norm_`` does.
    :param clip_grad_value: Limit each element of the gradients of an update, as ``clip_grad_value_`` does.
    :param device_iterations: How many updates a call makes before it returns.
    :param gradient_accumulation: How many micro-batches of each replica make one update.
    :param replicas: How many copies of the model this process runs.
    :param replicas_per_input: How many replicas get the same data.
    :param input_grouping: Which replicas these are: ``consecutive`` or ``orthogonal``.
    :param outputs: Which outputs a call returns: ``final`` (those of the last micro-batch of each replica; the
        default), ``all``, ``every_n`` or ``sum``.
    :param output_period: With the outputs ``every_n``: every how many device iterations.
    :param reduction: How gradients of micro-batches are combined: ``mean`` or ``sum``.
    :param pooling: When to take their mean: ``post``, ``running`` or ``post_and_loss``.
    :param seed: The seed of the program's random numbers; without one it draws from torch's generator.
    :param broadcast_buffers: Refuse a forward that writes to a buffer, so that all replicas and instances keep equal
        ones. Otherwise each replica has its own, and the module shows the first one's.
    :param attributes_once: Let forward change plain tensor attributes once, at capture, instead of refusing that.
    :param nonfinite_loss: What to do about a loss that is NaN or infinite: ``warn``, ``raise`` or ``ignore``.
    :param backend: The kind of device; by default the best one present.
    :param cards: The devices to use; by default all of the backend's.
    :param tier: How the program is executed: ``eager``, ``graph`` or ``compiled``; by default as a graph first and as
        compiled code once that is ready.
    :param cache_directory: Where compiled code is kept; naming one means to compile at once.
    :param check: When to compare with eager PyTorch: ``first`` call, ``off``, or every n calls; by default the first
        call, unless that would take too long.
    :param on_mismatch: What to do if the program differs from eager PyTorch by more than rounding: ``raise`` or
        ``warn``.
    :param accumulation: The type in which half-precision products are summed: ``float`` or ``half``.
    :param recomputation: What backward recomputes instead of keeping it: ``marked`` (everything between values that
        forward marks with `pilotage.keep_for_backward`), ``stages`` or ``none``.
    :param locations: Where to keep tensors that are not in use: `pilotage.Locations`, or a dictionary with its names.
    :param pipeline: The order in which stages work: ``1f1b``, ``gpipe`` or ``sharded``.
    :param synthetic_inputs: Run on random inputs that are created on the device once.
    :param anchors: Names of values inside the program; ``step.anchored`` has them after each call, and
        ``step.tensor_names()`` lists all names.
    :param shapes: How many shapes of calls get a program each, such as a smaller last batch; 1 refuses other shapes.
    :param name: The name of the program in logs.
    """
    settings = execution(
        device_iterations=device_iterations,
        gradient_accumulation=gradient_accumulation,
        replicas=replicas,
        replicas_per_input=replicas_per_input,
        input_grouping=input_grouping,
        outputs=outputs,
        output_period=output_period,
        reduction=reduction,
        pooling=pooling,
        seed=seed,
        broadcast_buffers=broadcast_buffers,
        attributes_once=attributes_once,
        nonfinite_loss=nonfinite_loss,
        backend=backend,
        cards=cards,
        tier=tier,
        cache_directory=cache_directory,
        check=check,
        on_mismatch=on_mismatch,
        accumulation=accumulation,
        recomputation=recomputation,
        locations=locations,
        pipeline=pipeline,
        synthetic_inputs=synthetic_inputs,
        anchors=anchors,
        shapes=shapes,
        name=name,
    )
    require_module(module)
    require_optimizer(optimizer)
    require_loss(loss)
    max_norm, max_value = clipping(clip_grad_norm, clip_grad_value)
    refinements = Refinements(max_gradient_norm=max_norm, max_gradient_value=max_value, own_steps=True)
    whole = module if loss is None else WithLoss(module, loss)
    followed = FollowedOptimizer(optimizer, whole, refinements)
    plan = followed.first_plan()
    peers = peers_here() if distributed else None
    if peers is not None:
        settings = settings.shared_with(instance=peers.world.rank, instances=peers.world.size)
    executor = ShapedExecutor(
        whole,
        execution=settings,
        plan=plan,
        listeners=(log_event, *listeners),
        peers=peers,
        pipeline_group=pipeline_group_here() if distributed else None,
        optimizer=followed,
        host_steps=HostSteps(optimizer, remedy=_REMEDY, sends_edits=True),
        parsers=without_caches(),
    )
    return CompiledModel(executor, module, refinements)


@suggesting
def inference(
    module: nn.Module,
    *,
    distributed: bool = False,
    listeners: Iterable[Listener] = (),
    device_iterations: int = 1,
    replicas: int = 1,
    replicas_per_input: int = 1,
    input_grouping: str | ReplicaGrouping = ReplicaGrouping.CONSECUTIVE,
    outputs: str | OutputMode | None = None,
    output_period: int = 1,
    seed: int | None = None,
    broadcast_buffers: bool = False,
    attributes_once: bool = False,
    backend: str | None = None,
    cards: Sequence[str] | None = None,
    tier: str | Tier | None = None,
    cache_directory: str | Path | None = None,
    check: str | int | None = None,
    on_mismatch: str | OnMismatch = OnMismatch.RAISE,
    accumulation: str | Accumulation | None = None,
    pipeline: str | PipelineOrder | None = None,
    synthetic_inputs: bool = False,
    anchors: Sequence[str] = (),
    shapes: int = 8,
    name: str | None = None,
) -> CompiledModel:
    """Wrap a module so that each call runs its forward as a captured program.

    With ``distributed`` a model of several stages is shared with the other processes of this instance. By default a
    call returns the outputs of all micro-batches. The other arguments are those of `pilotage.training`.
    """
    settings = execution(
        device_iterations=device_iterations,
        replicas=replicas,
        replicas_per_input=replicas_per_input,
        input_grouping=input_grouping,
        outputs=outputs,
        output_period=output_period,
        seed=seed,
        broadcast_buffers=broadcast_buffers,
        attributes_once=attributes_once,
        backend=backend,
        cards=cards,
        tier=tier,
        cache_directory=cache_directory,
        check=check,
        on_mismatch=on_mismatch,
        accumulation=accumulation,
        pipeline=pipeline,
        synthetic_inputs=synthetic_inputs,
        anchors=anchors,
        shapes=shapes,
        name=name,
    )
    require_module(module)
    executor = ShapedExecutor(
        module,
        execution=settings,
        listeners=(log_event, *listeners),
        pipeline_group=pipeline_group_here() if distributed else None,
    )
    return CompiledModel(executor, module)
