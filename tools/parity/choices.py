"""The enums, with all their members."""

from __future__ import annotations

from tools.parity.rows import Row, Status, Table, rows

MEMBERS = {
    "MeanReductionStrategy": "Running=0 Post=1 PostAndLoss=2",
    "DataLoaderMode": "Sync=0 Async=1 AsyncRebatched=2",
    "SharingStrategy": "SharedMemory=0 FileSystem=1 Fork=2 ForkServer=3",
    "OutputMode": "Final=0 EveryN=1 All=2 Sum=3 Default=4",
    "ConnectionType": "Always=0 OnDemand=1 Never=2",
    "HalfFloatCastingBehavior": "FloatDowncastToHalf=0 HalfUpcastToFloat=1 Default=2",
    "ReductionType": "Sum=0 Mean=1 NoReduction=2",
    "SyncPattern": "Full=0 SinglePipeline=1 ReplicaAndLadder=2",
    "Liveness": "AlwaysLive=0 OffChipAfterFwd=1 OffChipAfterFwdNoOverlap=2 OffChipAfterEachPhase=3",
    "AutoStage": "SameAsIpu=0 AutoIncrement=1",
    "MultiConvPlanType": "Parallel=0 Serial=1",
    "CommGroupType": "All=0 Consecutive=1 Orthogonal=2 NoGrouping=3",
    "VariableRetrievalMode": "OnePerGroup=0 AllReplicas=2",
    "MatMulSerializationMode": "InputChannels=input_channels ReducingDim=reducing_dim OutputChannels=output_channels "
    "Disabled=none",
    "OverlapMode": "NoOverlap=no_overlap OverlapAccumulationLoop=overlap_accumulation_loop "
    "OverlapDeviceIterationLoop=overlap_device_iteration_loop",
}
"""Each enum, with the values of its members."""

TABLES = (
    Table(
        title="Enums",
        rows=(
            *(Row(name, Status.WORKS, ", ".join(members.split())) for name, members in MEMBERS.items()),
            *rows(noted={"AnchorMode": "The name of OutputMode before PopTorch 3."}),
        ),
    ),
)
