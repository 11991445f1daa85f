"""PopART's options: the names that a backend accepts, and a typed record of those that have a meaning here."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from pilotage.engine import OptionError, did_you_mean

__all__ = ["HAVE_EFFECT", "PopartSettings", "is_backend_option", "similar_option"]

_OWN = """
accumulation_and_replication_reduction_type anchored_tensors auto_round_num_ipus available_memory_proportion
broadcast_buffers connection_type device_iterations distributed_process_id execution_mode gradient_accumulation
input_cgt input_group_size ipu_id ipu_version ipuof_configs location_accumulator location_activation location_optimizer
location_weight log_dir max_repeat_logs meanAccumulationAndReplicationReductionStrategy model_name
num_distributed_processes output_mode output_return_period pilotage_backend pilotage_check
pilotage_nonfinite_loss pilotage_on_mismatch pilotage_pipeline
pilotage_tier random_seed replication_factor separate_backward_phase serial_phases_execution sync_pattern
tensors_liveness use_model
"""

_POPART = """
_enableRngStateManagement accumulateOuterFragmentSettings accumulationAndReplicationReductionType accumulationFactor
accumulatorTensorLocationSettings activationTensorLocationSettings aliasZeroCopy aliasZeroCopyLivenessCountLimit
autoRecomputation autodiffSettings automaticLossScalingSettings batchSerializationSettings bufferingDepthMap cachePath
compilationProgressLogger compilationProgressTotal compileEngine constantWeights convolutionOptions
createHostTransferableTensorWithOffset createImplicitPipeliningFwdOnlyProgram customCodeletCompileFlags customCodelets
decomposeGradSum defaultBufferingDepth defaultPrefetchBufferingDepth delayVarUpdates developerSettings
disableGradAccumulationTensorStreams disableOptimizerStateTensorStreams dotChecks dotOpNames
enableConstantFoldingOfMultipleConsumers enableConstantWeights enableDistributedReplicatedGraphs enableEngineCaching
enableExplicitIR enableExplicitMainLoops enableFloatingPointChecks enableFullyConnectedPass enableGradientAccumulation
enableGroupedMatmuls enableInplaceAmbiguityChecking enableLoadAndOffloadRNGState enableMergeExchange
enableNonStableSoftmax enableOutlining enableOutliningCopyCostPruning enablePipelining enablePrefetchDatastreams
enableReplicatedGraphs enableSerializedMatmuls enableStableNorm enableStochasticRounding enableSupportedDataTypeCasting
enableVariablesCaching engineOptions ensureFp32LossScaleTensor executionPhaseSettings
experimentalSettings explicitPipelining explicitRecomputation exportPoplarComputationGraph exportPoplarVertexGraph
finalDotOp firstDotOp gclOptions globalReplicaOffset globalReplicationFactor groupHostSync
groupNormStridedChannelGrouping hardwareInstrumentations implicitPipelining instrumentWithHardwareCycleCounter
kahnTieBreaker logDir looseThresholdAtPeak lstmOptions matmulOptions meanReductionStrategy mergeVarUpdate
mergeVarUpdateMemThreshold numIOTiles optimizerStateTensorLocationSettings opxAliasChecking opxModifyChecking
outlineSequenceBreakCost outlineThreshold partialsTypeMatMuls patterns patterns_level prefetchBufferingDepthMap
rearrangeAnchorsOnHost rearrangeStreamsOnHost replicatedCollectivesSettings replicatedGraphCount reportOptions
saveInitializersToFile scheduleNonWeightUpdateGradientConsumersEarly separateCallOpPdfs
serializedPoprithmsAnnealGraphsDir serializedPoprithmsShiftGraphsDir strictOpVersions subgraphCopyingStrategy
swapLimitScheduler syntheticDataMode
tensorLocationSettingsOverride throwIfLog2ScaleFactorTensorNotInRange timeLimitScheduler
transitiveClosureOptimizationThreshold updatableNamedBuffers useHostCopyOps useLoopCandidateCreator virtualGraphMode
weightTensorLocationSettings
"""

_NAMES = frozenset(_OWN.split()) | frozenset(_POPART.split())

_READ = """
autoRecomputation automaticLossScalingSettings.enabled cachePath enableEngineCaching enableFloatingPointChecks
enableStochasticRounding engineOptions groupNormStridedChannelGrouping instrumentWithHardwareCycleCounter
partialsTypeMatMuls syntheticDataMode updatableNamedBuffers
"""

HAVE_EFFECT = frozenset(_READ.split())
"""The options of PopART that `PopartSettings` reads."""

_DEFAULT_CACHE = "session_cache"
"""Where PopART keeps compiled programs if no path is given."""

_MEMBERS = {
    "automaticLossScalingSettings": frozenset(
        [
            "enabled",
            "binEdgeLocation",
            "thresholdUpperCountProportion",
            "toTrackTensors",
            "updatePeriod",
            "gradientTensorTrackingMethod",
        ]
    )
}
"""The members of the groups that have a meaning here; other groups accept any member."""


def is_backend_option(name: str) -> bool:
    """Whether a backend has an option of this name, or ``group.member``."""
    group, separator, member = name.partition(".")
    if not separator:
        return name in _NAMES
    return group in _NAMES and group.endswith("Settings") and member in _MEMBERS.get(group, {member})


def similar_option(name: str) -> str:
    """A sentence with the option of a backend that an unknown name resembles; empty if there is none."""
    group, separator, _ = name.partition(".")
    members = [f"{group}.{each}" for each in _MEMBERS.get(group, ())] if separator else []
    return did_you_mean(name, members or _POPART.split())


@dataclass(frozen=True, kw_only=True, slots=True)
class PopartSettings:
    """The options of PopART that have a meaning here; all others are checked by name and stored."""

    automatic_loss_scaling: bool = False
    """Let the loss scale follow the size of the gradients."""
    stochastic_rounding: bool = False
    """Round half-precision weights up or down at random."""
    floating_point_checks: bool = False
    """Stop at operations that produce NaN or infinity."""
    counts_cycles: bool = False
    """Count the cycles of the hardware."""
    synthetic_data: bool = False
    """Use synthetic inputs that are created on the device."""
    updatable_buffers: tuple[str, ...] = ()
    """The buffers that copyNamedBuffersToDevice sends."""
    engine_options: Mapping[str, object] = field(default_factory=dict)
    """Options of Poplar."""
    cache_directory: Path | None = None
    """Where compiled programs are kept; None keeps none."""
    partials_type: Literal["float", "half"] | None = None
    """The type in which matrix products accumulate; None leaves it to the device."""
    recomputation: bool | None = None
    """Whether backward recomputes activations; None leaves it to the checkpoints in the model."""
    strided_groups: bool = False
    """Let the groups of a group normalisation take every n-th channel."""

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> PopartSettings:
        """Read and check PopART's options, by the names that PopART gives them."""
        partials = _one_of(options, "partialsTypeMatMuls", ("float", "half"))
        recomputation = _one_of(options, "autoRecomputation", range(5))
        return cls(
            automatic_loss_scaling=_switch(options, "automaticLossScalingSettings.enabled"),
            stochastic_rounding=_switch(options, "enableStochasticRounding"),
            floating_point_checks=_switch(options, "enableFloatingPointChecks"),
            counts_cycles=_switch(options, "instrumentWithHardwareCycleCounter"),
            synthetic_data=bool(_one_of(options, "syntheticDataMode", range(4))),
            updatable_buffers=_names(options, "updatableNamedBuffers"),
            engine_options=_table(options, "engineOptions"),
            cache_directory=_path(options, "cachePath") if _switch(options, "enableEngineCaching") else None,
            partials_type=cast('Literal["float", "half"] | None', partials),
            recomputation=None if recomputation is None else bool(recomputation),
            strided_groups=_switch(options, "groupNormStridedChannelGrouping"),
        )


def _switch(options: Mapping[str, Any], name: str) -> bool:
    return bool(_one_of(options, name, (False, True)))


def _one_of(options: Mapping[str, Any], name: str, choices: Sequence[object]) -> object:
    value = options.get(name)
    if value is None or (isinstance(value, bool | int | str) and value in choices):
        return value
    raise _refused(name, value, f"one of {', '.join(map(repr, choices))}")


def _names(options: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = options.get(name, [])
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise _refused(name, value, "a list of names")
    return tuple(value)


def _table(options: Mapping[str, Any], name: str) -> Mapping[str, object]:
    value = options.get(name, {})
    if not isinstance(value, Mapping):
        raise _refused(name, value, "a dictionary")
    return value


def _path(options: Mapping[str, Any], name: str) -> Path:
    value = options.get(name, _DEFAULT_CACHE)
    if not isinstance(value, str | os.PathLike):
        raise _refused(name, value, "a path")
    return Path(value)


def _refused(name: str, value: object, allowed: str) -> OptionError:
    return OptionError(f"The PopART option {name} is {value!r}. It must be {allowed}.")
