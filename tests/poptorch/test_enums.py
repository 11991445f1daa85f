from enum import Enum, IntEnum

import pytest

from poptorch import enums

WHOLE_NUMBERS = {
    "MeanReductionStrategy": {"Running": 0, "Post": 1, "PostAndLoss": 2},
    "DataLoaderMode": {"Sync": 0, "Async": 1, "AsyncRebatched": 2},
    "SharingStrategy": {"SharedMemory": 0, "FileSystem": 1, "Fork": 2, "ForkServer": 3},
    "OutputMode": {"Final": 0, "EveryN": 1, "All": 2, "Sum": 3, "Default": 4},
    "ConnectionType": {"Always": 0, "OnDemand": 1, "Never": 2},
    "HalfFloatCastingBehavior": {"FloatDowncastToHalf": 0, "HalfUpcastToFloat": 1, "Default": 2},
    "ReductionType": {"Sum": 0, "Mean": 1, "NoReduction": 2},
    "SyncPattern": {"Full": 0, "SinglePipeline": 1, "ReplicaAndLadder": 2},
    "Liveness": {
        "AlwaysLive": 0,
        "OffChipAfterFwd": 1,
        "OffChipAfterFwdNoOverlap": 2,
        "OffChipAfterEachPhase": 3,
    },
    "AutoStage": {"SameAsIpu": 0, "AutoIncrement": 1},
    "MultiConvPlanType": {"Parallel": 0, "Serial": 1},
    "CommGroupType": {"All": 0, "Consecutive": 1, "Orthogonal": 2, "NoGrouping": 3},
    "VariableRetrievalMode": {"OnePerGroup": 0, "AllReplicas": 2},
}
WORDS = {
    "MatMulSerializationMode": {
        "InputChannels": "input_channels",
        "ReducingDim": "reducing_dim",
        "OutputChannels": "output_channels",
        "Disabled": "none",
    },
    "OverlapMode": {
        "NoOverlap": "no_overlap",
        "OverlapAccumulationLoop": "overlap_accumulation_loop",
        "OverlapDeviceIterationLoop": "overlap_device_iteration_loop",
    },
}


@pytest.mark.parametrize("name", WHOLE_NUMBERS)
def test_these_enums_are_whole_numbers(name):
    kind = getattr(enums, name)
    assert issubclass(kind, IntEnum)
    assert {member.name: int(member) for member in kind} == WHOLE_NUMBERS[name]


@pytest.mark.parametrize("name", WORDS)
def test_these_enums_are_strings(name):
    kind = getattr(enums, name)
    assert issubclass(kind, Enum)
    assert not issubclass(kind, int)
    assert {member.name: member.value for member in kind} == WORDS[name]


def test_the_old_name_of_the_output_mode_still_works():
    assert enums.AnchorMode is enums.OutputMode


def test_every_enum_is_exported():
    assert set(enums.__all__) == {*WHOLE_NUMBERS, *WORDS, "AnchorMode"}
