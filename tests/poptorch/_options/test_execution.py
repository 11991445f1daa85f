import pytest
import torch

from pilotage.errors import OptionError
from pilotage.options.batching import Batching
from pilotage.options.choices import Accumulation, LossRule, NonFiniteLoss, Recomputation, Reduction, Tier
from pilotage.options.choices import OutputMode as EngineOutputMode
from pilotage.options.execution import Execution
from poptorch._options.execution import batching_of, execution_of, resolved, uses_ipu_model
from poptorch.enums import CommGroupType, MeanReductionStrategy, OutputMode, ReductionType
from poptorch.options import Options, ShardedExecution
from poptorch.poptorch_core import Error


@pytest.fixture(autouse=True)
def _no_simulator_in_the_environment(monkeypatch):
    for name in ("POPTORCH_IPU_MODEL", "POPTORCH_SMALL_IPU_MODEL"):
        monkeypatch.delenv(name, raising=False)


def test_default_options_give_the_engines_defaults_and_poptorchs_loss_rule():
    final, every = EngineOutputMode.FINAL, EngineOutputMode.ALL
    assert execution_of(Options(), training=True) == Execution(
        outputs=final, loss_rule=LossRule.CALLED, attributes_once=True
    )
    assert execution_of(Options(), training=False) == Execution(
        outputs=every, loss_rule=LossRule.CALLED, attributes_once=True
    )


def test_the_loops_of_a_call_are_carried_over():
    options = Options().deviceIterations(3).replicationFactor(4).inputReplicaGrouping(2, CommGroupType.Consecutive)
    options.Training.gradientAccumulation(5)
    expected = Batching(device_iterations=3, gradient_accumulation=5, replicas=4, replicas_per_input=2)
    assert batching_of(options) == expected
    assert execution_of(options, training=True).batching == expected


@pytest.mark.parametrize(
    ("mode", "engine_mode"),
    [
        (OutputMode.All, EngineOutputMode.ALL),
        (OutputMode.Final, EngineOutputMode.FINAL),
        (OutputMode.Sum, EngineOutputMode.SUM),
    ],
)
@pytest.mark.parametrize("training", [True, False])
def test_a_chosen_output_mode_is_carried_over(mode, engine_mode, training):
    assert execution_of(Options().outputMode(mode), training=training).outputs is engine_mode


def test_the_period_of_the_output_is_carried_over():
    execution = execution_of(Options().deviceIterations(3).outputMode(OutputMode.EveryN, 3), training=True)
    assert (execution.outputs, execution.output_period) == (EngineOutputMode.EVERY_N, 3)


def test_the_reduction_of_gradients_is_carried_over():
    options = Options()
    options.Training.accumulationAndReplicationReductionType(ReductionType.Sum)
    assert execution_of(options, training=True).reduction is Reduction.SUM
    options.Training.set(accumulation_and_replication_reduction_type=ReductionType.NoReduction)
    with pytest.raises(OptionError, match="NoReduction"):
        execution_of(options, training=True)


def test_the_seed_is_carried_over():
    assert execution_of(Options().randomSeed(0), training=True).seed == 0


@pytest.mark.parametrize("broadcast", [True, False])
def test_the_engine_does_not_refuse_written_buffers(broadcast):
    assert not execution_of(Options().broadcastBuffers(broadcast), training=True).broadcast_buffers


def test_the_backend_the_tier_and_the_treatment_of_losses_are_carried_over():
    execution = execution_of(Options().runOn("cuda", tier="eager", nonfinite_loss="ignore"), training=True)
    assert (execution.backend, execution.tier, execution.nonfinite_loss) == ("cuda", Tier.EAGER, NonFiniteLoss.IGNORE)


def test_floating_point_exceptions_replace_the_check_of_the_loss():
    options = Options()
    options.Precision.enableFloatingPointExceptions(True)
    assert execution_of(options, training=True).nonfinite_loss is NonFiniteLoss.IGNORE
    assert execution_of(options.runOn(nonfinite_loss="warn"), training=True).nonfinite_loss is NonFiniteLoss.WARN


@pytest.mark.parametrize(
    ("environment", "option", "expected"),
    [
        ({}, None, False),
        ({}, True, True),
        ({"POPTORCH_IPU_MODEL": "1"}, None, True),
        ({"POPTORCH_IPU_MODEL": "0"}, None, False),
        ({"POPTORCH_IPU_MODEL": "1"}, False, False),
        ({"POPTORCH_SMALL_IPU_MODEL": "1"}, None, True),
    ],
)
def test_the_simulator_runs_on_the_cpu(environment, option, expected, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    options = Options() if option is None else Options().useIpuModel(option)
    assert uses_ipu_model(options) is expected
    assert execution_of(options, training=True).backend == ("cpu" if expected else None)


def test_the_simulator_and_another_backend_contradict_each_other(monkeypatch):
    with pytest.raises(OptionError, match="Remove one of them"):
        execution_of(Options().useIpuModel(True).runOn("cuda"), training=True)
    monkeypatch.setenv("POPTORCH_IPU_MODEL", "1")
    assert execution_of(Options().runOn("cuda"), training=True).backend == "cuda"


def test_a_switch_in_the_environment_has_to_be_a_number(monkeypatch):
    monkeypatch.setenv("POPTORCH_IPU_MODEL", "yes")
    with pytest.raises(OptionError, match="POPTORCH_IPU_MODEL is 'yes'"):
        uses_ipu_model(Options())


def test_inference_accumulates_no_gradients():
    options = Options()
    options.Training.gradientAccumulation(2)
    expected = (
        r"You must set poptorch.Options\(\).Training.gradientAccumulation to 1 or leave it as its default value \(1\) "
        r"when running a poptorch.inferenceModel\(\)"
    )
    hint = (
        r" Use poptorch.Options\(\).deviceIterations to process a sufficient number of batches each run for pipelined "
        r"execution instead\.$"
    )
    with pytest.raises(Error, match=rf"{expected}\.{hint}"):
        execution_of(options, training=False)
    with pytest.raises(Error, match=rf"{expected}\.$"):
        execution_of(options.setExecutionStrategy(ShardedExecution()), training=False)


@pytest.mark.parametrize(
    ("kind", "inputs"), [(CommGroupType.Consecutive, [0, 0, 1, 1]), (CommGroupType.Orthogonal, [0, 1, 0, 1])]
)
def test_groups_of_replicas_read_the_same_data(kind, inputs):
    batching = batching_of(Options().replicationFactor(4).inputReplicaGrouping(2, kind))
    assert [batching.input_of(replica) for replica in range(4)] == inputs


@pytest.mark.parametrize("strategy", list(MeanReductionStrategy))
def test_the_reduction_strategy_becomes_the_pooling(strategy):
    options = Options()
    options.Training.setMeanAccumulationAndReplicationReductionStrategy(strategy)
    assert execution_of(options, training=True).pooling.value.replace("_and_", "and") == strategy.name.lower()


def test_counts_that_no_longer_fit_are_refused():
    options = Options().replicationFactor(4).inputReplicaGrouping(2, CommGroupType.Consecutive).replicationFactor(3)
    with pytest.raises(OptionError, match="must divide replicas"):
        execution_of(options, training=True)


@pytest.mark.parametrize(
    ("partials", "accumulation"),
    [(None, None), (torch.float, Accumulation.FLOAT), (torch.half, Accumulation.HALF)],
)
def test_the_type_of_partials_becomes_the_accumulation(partials, accumulation):
    options = Options()
    if partials is not None:
        options.Precision.setPartialsType(partials)
    assert execution_of(options, training=True).accumulation is accumulation


def test_synthetic_inputs_and_names_are_carried_over():
    execution = execution_of(Options().enableSyntheticData(True).modelName("mnist"), training=False)
    assert (execution.synthetic_inputs, execution.name) == (True, "mnist")


def test_default_modes_are_resolved_in_a_copy():
    options = Options()
    options.anchorTensor("follows", "a")
    options.anchorTensor("fixed", "b", OutputMode.EveryN, 2)
    options._freeze()
    own = resolved(options, training=True)
    assert own.output_mode == OutputMode.Final
    assert own.anchored_tensors == {
        "follows": ["a", True, OutputMode.Final, 1],
        "fixed": ["b", False, OutputMode.EveryN, 2],
    }
    assert resolved(options, training=False).output_mode == OutputMode.All
    assert options.defaultOutputMode()
    assert options.anchored_tensors["follows"] == ["a", True, None, 1]


def test_the_directory_of_compiled_programs_is_carried_over(tmp_path):
    assert execution_of(Options(), training=True).cache_directory is None
    options = Options().enableExecutableCaching(tmp_path)
    assert execution_of(options, training=True).cache_directory == tmp_path
    assert execution_of(options.enableExecutableCaching(None), training=True).cache_directory is None


@pytest.mark.parametrize("version", [None, "ipu1", "ipu2", "ipu21"])
def test_every_version_of_the_ipu_model_runs_on_the_cpu(monkeypatch, version):
    monkeypatch.setenv("POPTORCH_IPU_MODEL", "1")
    if version is not None:
        monkeypatch.setenv("POPTORCH_IPU_MODEL_VERSION", version)
    assert execution_of(Options(), training=False).backend == "cpu"


def test_an_unknown_version_of_the_ipu_model_is_refused(monkeypatch):
    monkeypatch.setenv("POPTORCH_IPU_MODEL", "1")
    monkeypatch.setenv("POPTORCH_IPU_MODEL_VERSION", "ipu3")
    with pytest.raises(OptionError, match="POPTORCH_IPU_MODEL_VERSION is 'ipu3'"):
        execution_of(Options(), training=False)


@pytest.mark.parametrize(
    ("told", "expected"),
    [(None, Recomputation.MARKED), (0, Recomputation.NONE), (1, Recomputation.STAGES), (3, Recomputation.STAGES)],
)
def test_recomputation_follows_the_popart_option(told, expected):
    options = Options()
    if told is not None:
        options._Popart.set("autoRecomputation", told)
    assert execution_of(options, training=True).recomputation is expected
