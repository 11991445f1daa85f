import copy
import pickle
import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from poptorch.enums import (
    AutoStage,
    CommGroupType,
    ConnectionType,
    MeanReductionStrategy,
    OutputMode,
    ReductionType,
    SyncPattern,
)
from poptorch.options import (
    Options,
    ParallelPhasedExecution,
    PipelinedExecution,
    SerialPhasedExecution,
    ShardedExecution,
    TensorLocationSettings,
    _DistributedOptions,
)

DEFAULTS = {
    "replication_factor": 1,
    "input_group_size": 1,
    "input_cgt": CommGroupType.Consecutive,
    "broadcast_buffers": True,
    "device_iterations": 1,
    "log_dir": ".",
    "max_repeat_logs": 4,
    "auto_round_num_ipus": False,
    "anchored_tensors": {},
    "output_mode": 4,
    "output_return_period": 1,
    "connection_type": 0,
    "sync_pattern": 0,
    "available_memory_proportion": {},
}

STRATEGIES = {
    "default": PipelinedExecution,
    "incremented": lambda: PipelinedExecution(AutoStage.AutoIncrement),
    "staged": lambda: PipelinedExecution("a", ["b", "c"]),
    "sharded": lambda: ShardedExecution("a", ["b", "c"]),
    "parallel": lambda: ParallelPhasedExecution("a", ["b", "c"]),
    "off chip": lambda: ParallelPhasedExecution("a", ["b", "c"]).sendTensorsOffChipAfterFwd(),
    "serial": lambda: SerialPhasedExecution("a", ["b", "c"]).useSeparateBackwardPhase(),
}

SETTERS = {
    "device_iterations": lambda options, value: options.deviceIterations(value),
    "replicas": lambda options, value: options.replicationFactor(value),
    "accumulation": lambda options, value: options.Training.gradientAccumulation(value),
    "reduction": lambda options, value: options.Training.accumulationAndReplicationReductionType(value),
    "mean": lambda options, value: options.Training.setMeanAccumulationAndReplicationReductionStrategy(value),
    "output": lambda options, value: options.outputMode(*value),
    "strategy": lambda options, value: options.setExecutionStrategy(STRATEGIES[value]()),
    "name": lambda options, value: options.modelName(value),
    "process": lambda options, value: options.Distributed.configureProcessId(value, 5),
    "popart": lambda options, value: [options._Popart.set(*item) for item in value.items()],
    "anchors": lambda options, value: [options.anchorTensor(*item) for item in value.items()],
    "partials": lambda options, value: options.Precision.setPartialsType(value),
    "rounding": lambda options, value: options.Precision.enableStochasticRounding(value),
    "weights": lambda options, value: options.TensorLocations.setWeightLocation(
        TensorLocationSettings().minElementsForOffChip(value)
    ),
    "excludes": lambda options, value: options.sourceLocationExcludes(value),
    "namescope": lambda options, value: options.disableModuleNamescope(),
    "relaxed": lambda options, value: options.relaxOptimizerAttributesChecks(),
    "backend": lambda options, value: options.runOn(value),
    "model": lambda options, value: options.useIpuModel(value),
}
NAMES = st.sampled_from(["a", "b", "c"])
# Each setting differs from the default, so that different choices are different options.
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "device_iterations": st.integers(2, 4),
        "replicas": st.integers(2, 4),
        "accumulation": st.integers(2, 4),
        "reduction": st.just(ReductionType.Sum),
        "mean": st.sampled_from([MeanReductionStrategy.Running, MeanReductionStrategy.PostAndLoss]),
        "output": st.sampled_from([(OutputMode.All,), (OutputMode.EveryN, 2), (OutputMode.EveryN, 3)]),
        "strategy": st.sampled_from([name for name in STRATEGIES if name != "default"]),
        "name": NAMES,
        "process": st.integers(0, 4),
        "popart": st.dictionaries(NAMES, st.integers(0, 2), min_size=1),
        "anchors": st.dictionaries(NAMES, NAMES, min_size=1),
        "partials": st.sampled_from([torch.half, torch.float]),
        "rounding": st.booleans(),
        "weights": st.integers(0, 2),
        "excludes": st.lists(NAMES, min_size=1, max_size=2),
        "namescope": st.just(None),
        "relaxed": st.just(None),
        "backend": NAMES,
        "model": st.booleans(),
    },
)


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch):
    for name in ("POPTORCH_CACHE_DIR", "POPTORCH_DEFAULT_OPTIONS", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"):
        monkeypatch.delenv(name, raising=False)


def built(settings, order=None):
    options = Options()
    for name in order or settings:
        SETTERS[name](options, settings[name])
    return options


@pytest.mark.parametrize("name", DEFAULTS)
def test_an_option_that_is_not_set_has_its_default(name):
    value = Options()(name)
    assert value == DEFAULTS[name]
    assert type(value) is type(DEFAULTS[name])


def test_new_options_have_no_other_options():
    assert set(Options()._values) == set(DEFAULTS)


def test_private_settings_have_their_defaults():
    options = Options()
    assert type(options._execution_strategy) is PipelinedExecution
    assert options._relax_optimizer_checks is False
    assert options._show_compilation_progress_bar is True
    assert options._module_namescope_enabled is True
    assert options._source_location_excludes == []
    assert options._progress_bar is None


def test_the_text_starts_with_the_class_and_lists_everything():
    text = repr(Options().replicationFactor(4))
    assert text.startswith("Options(replication_factor=4, ")
    for group in ("_TrainingOptions(", "_DistributedOptions(", "_TensorLocationOptions(", "_PopartOptions("):
        assert group in text


@given(SETTINGS, st.randoms())
def test_equal_settings_have_equal_texts_in_any_order(settings, shuffler):
    order = list(settings)
    shuffler.shuffle(order)
    assert repr(built(settings)) == repr(built(settings, order))


@given(SETTINGS, SETTINGS)
def test_different_settings_have_different_texts(one, other):
    assert (repr(built(one)) == repr(built(other))) == (one == other)


@given(SETTINGS, SETTINGS)
def test_a_clone_is_equal_and_independent(settings, changes):
    options = built(settings)
    text = repr(options)
    options._freeze()
    for clone in (options.clone(), copy.deepcopy(options)):
        assert type(clone) is Options
        assert repr(clone) == text
        for name, value in changes.items():
            SETTERS[name](clone, value)
        clone._Popart.set("z", 1)
        assert repr(options) == text


@given(SETTINGS, st.booleans())
def test_pickling_keeps_settings_and_frozen_state(settings, frozen):
    options = built(settings).outputMode(OutputMode.All)
    if frozen:
        options._freeze()
    restored = pickle.loads(pickle.dumps(options))
    assert repr(restored) == repr(options)
    assert restored.toDict() == options.toDict()
    if frozen:
        with pytest.raises(AttributeError, match="frozen"):
            restored.deviceIterations(2)
    else:
        restored.deviceIterations(2)


def test_groups_that_share_storage_still_share_it_in_a_clone():
    options = Options()
    clone = options.clone()
    clone.Precision.enableStochasticRounding(True)
    clone.Training.setAutomaticLossScaling(True)
    assert clone._Popart.options["enableStochasticRounding"] is True
    assert clone._Popart.options["automaticLossScalingSettings.enabled"] is True
    assert "enableStochasticRounding" not in options._Popart.options


EVERY_CHANGE = {
    "deviceIterations": lambda options: options.deviceIterations(2),
    "assignment": lambda options: setattr(options, "replication_factor", 4),
    "strategy": lambda options: options.setExecutionStrategy(ShardedExecution()),
    "replicas": lambda options: options.replicationFactor(2),
    "output": lambda options: options.outputMode(OutputMode.All),
    "anchor": lambda options: options.anchorTensor("a", "b"),
    "seed": lambda options: options.randomSeed(1),
    "name": lambda options: options.modelName("m"),
    "cache": lambda options: options.enableExecutableCaching("c"),
    "no cache": lambda options: options.enableExecutableCaching(None),
    "excludes": lambda options: options.appendToLocationExcludes("x"),
    "progress": lambda options: options.showCompilationProgressBar(False),
    "model": lambda options: options.useIpuModel(True),
    "profile": lambda options: options.enableProfiling(),
    "Training": lambda options: options.Training.gradientAccumulation(2),
    "Training through the backend": lambda options: options.Training.setAutomaticLossScaling(True),
    "Precision": lambda options: options.Precision.enableStochasticRounding(True),
    "Distributed": lambda options: options.Distributed.disable(),
    "TensorLocations": lambda options: options.TensorLocations.numIOTiles(32),
    "_Popart": lambda options: options._Popart.set("a", 1),
    "JSON": lambda options: options.from_json('{"deviceIterations": 2}'),
    "backend": lambda options: options.runOn("cpu"),
}


@pytest.mark.parametrize("change", EVERY_CHANGE)
def test_frozen_options_cannot_be_changed_in_any_part(change):
    options = Options()
    options._freeze()
    text = repr(options)
    with pytest.raises(AttributeError, match="Can't modify frozen Options"):
        EVERY_CHANGE[change](options)
    assert repr(options) == text
    options._unfreeze()
    EVERY_CHANGE[change](options)


def test_setting_a_frozen_seed_does_not_seed_torch():
    options = Options()
    options._freeze()
    torch.manual_seed(3)
    with pytest.raises(AttributeError):
        options.randomSeed(4)
    assert torch.initial_seed() == 3


def test_assigning_an_option_checks_it():
    options = Options()
    options.replication_factor = 4
    assert options.replication_factor == 4
    with pytest.raises(AssertionError, match="Unexpected type"):
        options.replication_factor = "4"
    with pytest.raises(AssertionError, match="Invalid option"):
        options.replicas = 4
    with pytest.raises(AttributeError, match="Invalid attribute _replicas"):
        options._replicas = 4


def test_an_unknown_option_is_named():
    with pytest.raises(AttributeError, match=r"Invalid attribute gradient_accumulation\."):
        _ = Options().gradient_accumulation


def test_the_dictionary_needs_a_resolved_output_mode():
    with pytest.raises(AssertionError, match=r"output mode is still OutputMode.Default"):
        Options().toDict()


def test_the_dictionary_contains_every_group():
    options = Options().outputMode(OutputMode.Sum).setExecutionStrategy(ShardedExecution())
    options._Popart.set("enableOutlining", False)
    options.Distributed.configureProcessId(1, 2)
    options.TensorLocations.numIOTiles(32)
    told = options.toDict()
    assert told == DEFAULTS | {
        "output_mode": 3,
        "execution_mode": 1,
        "instrumentWithHardwareCycleCounter": False,
        "rearrangeAnchorsOnHost": False,
        "enableOutlining": False,
        "gradient_accumulation": 1,
        "accumulation_and_replication_reduction_type": ReductionType.Mean,
        "meanAccumulationAndReplicationReductionStrategy": MeanReductionStrategy.Post,
        "distributed_process_id": 1,
        "num_distributed_processes": 2,
        "ipuof_configs": {},
        "location_activation": {},
        "location_weight": {},
        "location_optimizer": {},
        "location_accumulator": {},
        "numIOTiles": 32,
    }


def test_the_dictionary_of_frozen_options_can_be_made():
    options = Options().outputMode(OutputMode.All)
    options._freeze()
    assert options.toDict()["output_mode"] == OutputMode.All


def test_a_name_used_by_two_groups_is_refused():
    options = Options().outputMode(OutputMode.All)
    options._Popart.set("replication_factor", 2)
    with pytest.raises(AssertionError, match="keys in common: replication_factor"):
        options.toDict()


class Fixed(_DistributedOptions):
    def disable(self):
        raise RuntimeError("no")


def test_the_class_of_a_group_can_be_reassigned():
    options = Options()
    options.Distributed.__class__ = Fixed
    with pytest.raises(RuntimeError):
        options.Distributed.disable()
    assert type(options.clone().Distributed) is Fixed
    assert type(pickle.loads(pickle.dumps(options)).Distributed) is Fixed


class Own(Options):
    def __init__(self, size):
        super().__init__()
        self._size = size
        self.set(replication_factor=size)

    def replicationFactor(self, replication_factor):  # noqa: N802
        raise RuntimeError(f"Cannot call `replicationFactor`; it is {self._size}.")


def test_a_subclass_can_have_more_options():
    options = Own(3)
    assert (options.clone()._size, options.clone().replication_factor) == (3, 3)
    assert isinstance(pickle.loads(pickle.dumps(options)), Own)
    with pytest.raises(RuntimeError, match="Cannot call"):
        options.replicationFactor(2)


def test_the_environment_names_the_cache(monkeypatch):
    monkeypatch.setenv("POPTORCH_CACHE_DIR", "kept")
    options = Options()._Popart.options
    assert (options["cachePath"], options["enableEngineCaching"]) == ("kept", True)
    monkeypatch.setenv("POPTORCH_CACHE_DIR", "")
    assert "cachePath" not in Options()._Popart.options


def test_the_environment_holds_default_options(monkeypatch):
    monkeypatch.setenv("POPTORCH_DEFAULT_OPTIONS", '{"deviceIterations": 7, "connectionType": "ConnectionType.Never"}')
    options = Options()
    assert (options.device_iterations, options.connection_type) == (7, ConnectionType.Never)
    monkeypatch.setenv("POPTORCH_DEFAULT_OPTIONS", "")
    assert Options().device_iterations == 1


FLUENT = {
    "showCompilationProgressBar": (),
    "relaxOptimizerAttributesChecks": (),
    "autoRoundNumIPUs": (),
    "deviceIterations": (2,),
    "setExecutionStrategy": (ShardedExecution(),),
    "setAvailableMemoryProportion": ({"IPU0": 0.5},),
    "replicationFactor": (2,),
    "inputReplicaGrouping": (1, CommGroupType.Consecutive),
    "broadcastBuffers": (),
    "logDir": ("x",),
    "maxRepeatLogs": (None,),
    "modelName": ("x",),
    "enableExecutableCaching": ("x",),
    "useIpuModel": (True,),
    "connectionType": (ConnectionType.Always,),
    "syncPattern": (SyncPattern.Full,),
    "useIpuId": (0,),
    "useOfflineIpuTarget": (),
    "outputMode": (OutputMode.All,),
    "anchorMode": (OutputMode.All,),
    "randomSeed": (1,),
    "enableStableNorm": (True,),
    "enableSyntheticData": (True,),
    "logCycleCount": (True,),
    "updatableNamedBuffers": (["x"],),
    "enableProfiling": (),
    "disableModuleNamescope": (),
    "sourceLocationExcludes": (["x"],),
    "appendToLocationExcludes": ("x", "y"),
    "from_json": ("{}",),
    "runOn": ("cpu",),
}


@pytest.mark.parametrize("method", FLUENT)
def test_calls_can_be_chained(method):
    options = Options()
    assert getattr(options, method)(*FLUENT[method]) is options


def test_options_are_pickled_without_running_code_of_the_caller():
    random.seed(0)
    assert repr(pickle.loads(pickle.dumps(Options(), protocol=4))) == repr(Options())
