"""PopART's enums, whose numbers programs pass to ``poptorch.Options()._Popart.set``.

Numbers that reach a program here (recomputation, synthetic data, and the enums that PopTorch has too) are tested
against PopTorch's. The others were never compared with a PopART, and nothing here reads them.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = [
    "AccumulateOuterFragmentSchedule",
    "AnchorReturnTypeId",
    "BatchSerializationBatchSchedule",
    "BatchSerializationMethod",
    "BatchSerializationTransformContext",
    "CommGroupType",
    "DeviceConnectionType",
    "ExecutionPhaseIOSchedule",
    "ExecutionPhaseSchedule",
    "GradientTensorTrackingMethod",
    "Instrumentation",
    "MeanReductionStrategy",
    "MergeVarUpdateType",
    "RecomputationType",
    "ReductionType",
    "ReplicatedTensorSharding",
    "SubgraphCopyingStrategy",
    "SyncPattern",
    "SyntheticDataMode",
    "TensorStorage",
    "TileSet",
    "VariableRetrievalMode",
    "VirtualGraphMode",
]


class AccumulateOuterFragmentSchedule(IntEnum):
    """When the update of the outer fragment runs."""

    Scheduler = 0
    Serial = 1
    OverlapCycleOptimized = 2
    OverlapMemoryOptimized = 3


class AnchorReturnTypeId(IntEnum):
    """Which values of a tensor are returned."""

    Final = 0
    EveryN = 1
    All = 2
    Sum = 3


class BatchSerializationBatchSchedule(IntEnum):
    """How the parts of a serialized batch are ordered."""

    Scheduler = 0
    Isomorphic = 1
    OverlapOnIo = 2
    OverlapOnCompute = 3


class BatchSerializationMethod(IntEnum):
    """How a batch is serialized."""

    UnrollDynamic = 0
    UnrollStatic = 1
    Loop = 2


class BatchSerializationTransformContext(IntEnum):
    """Where a batch is serialized."""

    Fwd = 0
    Bwd = 1


class CommGroupType(IntEnum):
    """How replicas are grouped."""

    All = 0
    Consecutive = 1
    Orthogonal = 2
    NoGrouping = 3


class DeviceConnectionType(IntEnum):
    """When a device is attached."""

    Always = 0
    OnDemand = 1
    Never = 2


class ExecutionPhaseIOSchedule(IntEnum):
    """When a phase loads its tensors."""

    Preload = 0
    OnDemand = 1


class ExecutionPhaseSchedule(IntEnum):
    """How the operations of a phase are ordered."""

    Interleaving = 0
    Batch = 1
    BatchClusteredIO = 2


class GradientTensorTrackingMethod(IntEnum):
    """Which gradients automatic loss scaling looks at."""

    AllNonViewChangingGradientTensors = 0
    ConvAndMatmulGradients = 1
    GradientsOfUserSpecifiedTensors = 2


class Instrumentation(IntEnum):
    """Where cycles are counted."""

    Outer = 0
    Inner = 1


class MeanReductionStrategy(IntEnum):
    """When a sum of gradients is divided by their number."""

    Running = 0
    Post = 1
    PostAndLoss = 2


class MergeVarUpdateType(IntEnum):
    """How updates of weights are merged."""

    Off = 0
    All = 1
    AutoLoose = 2
    AutoTight = 3


class RecomputationType(IntEnum):
    """Which activations backward recomputes."""

    NoRecompute = 0
    Standard = 1
    NormOnly = 2
    Pipeline = 3
    RecomputeAll = 4


class ReductionType(IntEnum):
    """How losses are reduced."""

    Mean = 0
    Sum = 1
    NoReduction = 2


class ReplicatedTensorSharding(IntEnum):
    """Whether a tensor is divided among replicas."""

    Off = 0
    On = 1


class SubgraphCopyingStrategy(IntEnum):
    """When the inputs and outputs of a subgraph are copied."""

    OnEnterAndExit = 0
    JustInTime = 1


class SyncPattern(IntEnum):
    """Which IPUs wait for each other."""

    Full = 0
    SinglePipeline = 1
    ReplicaAndLadder = 2


class SyntheticDataMode(IntEnum):
    """Whether inputs are created on the device."""

    Off = 0
    Zeros = 1
    RandomNormal = 2
    RandomUniform = 3


class TensorStorage(IntEnum):
    """Where a tensor is kept."""

    OffChip = 0
    OnChip = 1


class TileSet(IntEnum):
    """Which tiles a tensor is on."""

    Compute = 0
    IO = 1


class VariableRetrievalMode(IntEnum):
    """Which replicas return a variable."""

    OnePerGroup = 0
    AllReplicas = 2


class VirtualGraphMode(IntEnum):
    """How operations are assigned to IPUs."""

    Off = 0
    Manual = 1
    Auto = 2
    ExecutionPhases = 3
