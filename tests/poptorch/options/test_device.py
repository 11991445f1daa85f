import pytest

from pilotage.errors import OptionError
from pilotage.options.choices import NonFiniteLoss, PipelineOrder, Tier
from poptorch._options.execution import execution_of
from poptorch.enums import ConnectionType, SyncPattern
from poptorch.options import Options, ShardedExecution


def test_the_choice_of_the_ipu_model_is_stored():
    assert not Options().exists("use_model")
    assert Options().useIpuModel(True).use_model is True
    assert Options().useIpuModel(True).useIpuModel(False).use_model is False
    with pytest.raises(AssertionError, match="True or False"):
        Options().useIpuModel(1)


@pytest.mark.parametrize("kind", ConnectionType)
def test_a_connection_type_is_stored_as_a_number(kind):
    options = Options().connectionType(kind)
    assert options.connection_type == kind
    assert type(options.connection_type) is int


@pytest.mark.parametrize("pattern", SyncPattern)
def test_a_sync_pattern_is_stored_as_a_number(pattern):
    options = Options().syncPattern(pattern)
    assert options.sync_pattern == pattern
    assert type(options.sync_pattern) is int


@pytest.mark.parametrize("method", ["connectionType", "syncPattern"])
@pytest.mark.parametrize("value", [0, "Never", None])
def test_choices_must_be_enums(method, value):
    with pytest.raises(AssertionError, match=r"poptorch."):
        getattr(Options(), method)(value)


def test_an_ipu_is_chosen_by_number():
    assert Options().useIpuId(3).ipu_id == 3
    with pytest.raises(AssertionError, match="whole number"):
        Options().useIpuId("3")


def test_an_offline_target_is_never_connected_to():
    options = Options().useOfflineIpuTarget()
    assert (options.connection_type, options.ipu_version) == (ConnectionType.Never, 2)
    assert Options().useOfflineIpuTarget(ipu_version=21).ipu_version == 21
    with pytest.raises(AssertionError, match="whole number"):
        Options().useOfflineIpuTarget("ipu2")


def test_numbers_of_ipus_are_rounded_on_request():
    assert Options().autoRoundNumIPUs().auto_round_num_ipus is True
    assert Options().autoRoundNumIPUs(False).auto_round_num_ipus is False


def test_proportions_of_memory_are_stored_by_number():
    options = Options().setAvailableMemoryProportion({"IPU0": 0.5, "IPU12": 0.25})
    assert options.available_memory_proportion == {0: 0.5, 12: 0.25}


@pytest.mark.parametrize("key", ["ipu0", "0", 0, "IPU", "IPUx"])
def test_proportions_of_memory_must_be_named_after_ipus(key):
    with pytest.raises(AssertionError, match="'IPU0'"):
        Options().setAvailableMemoryProportion({key: 0.5})


def test_the_backend_and_its_tier_are_stored_and_shown():
    options = Options().runOn("cuda", tier="graph", nonfinite_loss="raise")
    assert (options.pilotage_backend, options.pilotage_tier, options.pilotage_nonfinite_loss) == (
        "cuda",
        "graph",
        "raise",
    )
    assert "pilotage_backend='cuda'" in repr(options)
    assert repr(Options().runOn(tier=Tier.GRAPH, nonfinite_loss=NonFiniteLoss.RAISE).runOn("cuda")) == repr(options)


def test_the_order_of_a_pipeline_follows_the_strategy_or_the_option():
    assert execution_of(Options(), training=True).pipeline is None
    assert execution_of(Options().runOn(pipeline="gpipe"), training=True).pipeline is PipelineOrder.GPIPE
    sharded = Options().runOn(pipeline="gpipe").setExecutionStrategy(ShardedExecution())
    assert execution_of(sharded, training=True).pipeline is PipelineOrder.SHARDED


def test_backend_options_that_are_not_set_have_no_value():
    options = Options().runOn("cpu")
    assert not options.exists("pilotage_tier")
    assert not options.exists("pilotage_nonfinite_loss")


@pytest.mark.parametrize(
    "change", [{"backend": ""}, {"backend": 3}, {"tier": "fast"}, {"nonfinite_loss": "cry"}, {"pipeline": "back"}]
)
def test_an_invalid_choice_is_refused(change):
    with pytest.raises(OptionError):
        Options().runOn(**change)
