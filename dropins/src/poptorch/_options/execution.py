"""Translates PopTorch's options into the engine's."""

from __future__ import annotations

import os

from pilotage.engine import (
    Accumulation,
    Batching,
    Check,
    Execution,
    LossRule,
    NonFiniteLoss,
    OptionError,
    PipelineOrder,
    Pooling,
    Recomputation,
    Reduction,
    ReplicaGrouping,
    Tier,
)
from pilotage.engine import OutputMode as EngineOutputMode
from poptorch._errors import createPoptorchError
from poptorch._options.locations import locations_of
from poptorch._options.popart import PopartSettings
from poptorch.enums import CommGroupType, MeanReductionStrategy, OutputMode, ReductionType
from poptorch.options import Options, PipelinedExecution, ShardedExecution

__all__ = [
    "GROUPINGS",
    "batching_of",
    "execution_of",
    "resolved",
    "uses_ipu_model",
    "uses_ipu_model_by_environment",
    "uses_small_ipu_model",
]

_OUTPUT_MODES = {
    OutputMode.All: EngineOutputMode.ALL,
    OutputMode.EveryN: EngineOutputMode.EVERY_N,
    OutputMode.Final: EngineOutputMode.FINAL,
    OutputMode.Sum: EngineOutputMode.SUM,
}
_POOLINGS = {
    MeanReductionStrategy.Running: Pooling.RUNNING,
    MeanReductionStrategy.Post: Pooling.POST,
    MeanReductionStrategy.PostAndLoss: Pooling.POST_AND_LOSS,
}
GROUPINGS = {
    CommGroupType.Consecutive: ReplicaGrouping.CONSECUTIVE,
    CommGroupType.Orthogonal: ReplicaGrouping.ORTHOGONAL,
}
"""How replicas are assigned to groups."""

_ACCUMULATIONS = {None: None, "float": Accumulation.FLOAT, "half": Accumulation.HALF}
_RECOMPUTATIONS = {None: Recomputation.MARKED, False: Recomputation.NONE, True: Recomputation.STAGES}
_MODEL_VERSIONS = ("ipu1", "ipu2", "ipu21")
_REDUCTIONS = {ReductionType.Mean: Reduction.MEAN, ReductionType.Sum: Reduction.SUM}


def execution_of(options: Options, *, training: bool) -> Execution:
    """What these options ask of the engine for a training or an inference program."""
    if not training:
        _check_inference(options)
    own = resolved(options, training=training)
    popart = own._Popart.settings
    return Execution(
        batching=batching_of(own),
        outputs=_OUTPUT_MODES[OutputMode(own.output_mode)],
        output_period=own.output_return_period,
        reduction=_reduction_of(own),
        pooling=_POOLINGS[own.Training.meanAccumulationAndReplicationReductionStrategy],
        seed=own.random_seed if own.exists("random_seed") else None,
        instance=own.Distributed.processId,
        attributes_once=True,
        backend=_backend_of(own),
        check=_check_of(own),
        tier=Tier(own.pilotage_tier) if own.exists("pilotage_tier") else None,
        cache_directory=popart.cache_directory,
        loss_rule=LossRule.CALLED,
        nonfinite_loss=_treatment_of_losses(own, popart),
        accumulation=_ACCUMULATIONS[popart.partials_type],
        recomputation=_RECOMPUTATIONS[popart.recomputation],
        locations=locations_of(own),
        pipeline=_pipeline_of(own),
        synthetic_inputs=popart.synthetic_data,
        name=own.model_name if own.exists("model_name") else None,
    )


def _check_of(options: Options) -> Check:
    if not options.exists("pilotage_check"):
        return Check.of()
    return Check.of(options.pilotage_check, options.pilotage_on_mismatch)


def resolved(options: Options, *, training: bool) -> Options:
    """A copy for one executor, in which default output modes are resolved."""
    own = options.clone()
    if own.defaultOutputMode():
        own.outputMode(OutputMode.Final if training else OutputMode.All)
    for anchor in own.anchored_tensors.values():
        _, takes_the_models, _, _ = anchor
        if takes_the_models:
            anchor[2:] = [OutputMode(own.output_mode), own.output_return_period]
    return own


def batching_of(options: Options) -> Batching:
    """How one call is split into micro-batches; an executor and its data loader have to agree on it."""
    return Batching(
        device_iterations=options.device_iterations,
        gradient_accumulation=options.Training.gradient_accumulation,
        replicas=options.replication_factor,
        instances=options.Distributed.numProcesses,
        replicas_per_input=options.input_group_size,
        input_grouping=GROUPINGS[options.input_cgt],
    )


def uses_ipu_model(options: Options) -> bool:
    """Whether the IPU model was requested, by the option or, if that is not set, by the environment."""
    if options.exists("use_model"):
        return bool(options.use_model)
    return uses_ipu_model_by_environment()


def uses_ipu_model_by_environment() -> bool:
    """Whether the environment asks for the IPU model."""
    return any(_switched_on(name) for name in ("POPTORCH_IPU_MODEL", "POPTORCH_SMALL_IPU_MODEL"))


def uses_small_ipu_model(options: Options) -> bool:
    """Whether the model has 4 tiles only; the full model, by the option or by the environment, has precedence."""
    is_full = options.exists("use_model") or _switched_on("POPTORCH_IPU_MODEL")
    return not is_full and _switched_on("POPTORCH_SMALL_IPU_MODEL")


def _check_inference(options: Options) -> None:
    if options.Training.gradient_accumulation == 1:
        return
    strategy = options._execution_strategy
    is_pipelined = isinstance(strategy, PipelinedExecution) and not isinstance(strategy, ShardedExecution)
    hint = (
        " Use poptorch.Options().deviceIterations to process a sufficient number of batches each run for pipelined "
        "execution instead."
        if is_pipelined
        else ""
    )
    raise createPoptorchError(
        "You must set poptorch.Options().Training.gradientAccumulation to 1 or leave it as its default value (1) when "
        f"running a poptorch.inferenceModel().{hint}"
    )


def _reduction_of(options: Options) -> Reduction:
    reduction = options.Training.accumulation_and_replication_reduction_type
    if reduction not in _REDUCTIONS:
        raise OptionError(f"Gradients cannot be reduced by {reduction!r}. Choose ReductionType.Mean or .Sum.")
    return _REDUCTIONS[reduction]


def _pipeline_of(options: Options) -> PipelineOrder | None:
    if isinstance(options._execution_strategy, ShardedExecution):
        return PipelineOrder.SHARDED
    return PipelineOrder(options.pilotage_pipeline) if options.exists("pilotage_pipeline") else None


def _treatment_of_losses(options: Options, popart: PopartSettings) -> NonFiniteLoss:
    if options.exists("pilotage_nonfinite_loss"):
        return NonFiniteLoss(options.pilotage_nonfinite_loss)
    # Every operation is checked then, and the failing one comes before the loss.
    return NonFiniteLoss.IGNORE if popart.floating_point_checks else NonFiniteLoss.WARN


def _backend_of(options: Options) -> str | None:
    chosen: str | None = options.pilotage_backend if options.exists("pilotage_backend") else None
    if not uses_ipu_model(options):
        return chosen
    _check_model_version()
    if chosen not in (None, "cpu") and options.exists("use_model"):
        raise OptionError(
            f"useIpuModel(True) runs on the CPU, but runOn({chosen!r}) asks for another backend. Remove one of them."
        )
    return chosen or "cpu"


def _check_model_version() -> None:
    version = os.environ.get("POPTORCH_IPU_MODEL_VERSION")
    if version and version not in _MODEL_VERSIONS:
        raise OptionError(
            f"POPTORCH_IPU_MODEL_VERSION is {version!r}. Choose one of {', '.join(_MODEL_VERSIONS)}, or leave it out."
        )


def _switched_on(variable: str) -> bool:
    text = os.environ.get(variable)
    try:
        return bool(text) and int(text or 0) != 0
    except ValueError:
        raise OptionError(f"The environment variable {variable} is {text!r}. It must be a whole number.") from None
