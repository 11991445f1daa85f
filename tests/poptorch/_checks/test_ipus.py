import pytest
from hypothesis import given
from hypothesis import strategies as st

from poptorch._checks.ipus import check_ipu_count, check_pipeline_depth, pipeline_stages
from poptorch.options import Options, SerialPhasedExecution, ShardedExecution
from poptorch.poptorch_core import Error


@pytest.mark.parametrize(
    ("ipus", "stages"), [([], 1), ([0], 1), ([0, 0, 1], 2), ([0, 1, 0], 3), ([0, 1, 1, 2, 0, 0, 3], 5)]
)
def test_a_pipeline_has_a_stage_more_for_each_change_of_ipu(ipus, stages):
    assert pipeline_stages(ipus) == stages


@given(st.integers(2, 20), st.integers(1, 60))
def test_training_needs_enough_micro_batches_for_forward_and_backward_stages(stages, accumulation):
    options = Options()
    options.Training.gradientAccumulation(accumulation)
    if accumulation >= 2 * stages - 1:
        check_pipeline_depth(options, stages, training=True)
    else:
        with pytest.raises(Error, match=rf"number of pipeline stages \({2 * stages - 1}\)"):
            check_pipeline_depth(options, stages, training=True)


def test_the_message_about_training_says_where_the_stages_come_from():
    with pytest.raises(Error) as caught:
        check_pipeline_depth(Options(), 4, training=True)
    assert str(caught.value) == (
        "poptorch.Options().Training.gradientAccumulation must be greater than or equal to the number of pipeline "
        "stages (7) when using poptorch.PipelinedExecution. Please note that a model with 4 pipeline stages in "
        "PopTorch will have an additional 3 stages when training."
    )


def test_inference_needs_a_device_iteration_for_each_stage():
    check_pipeline_depth(Options().deviceIterations(4), 4, training=False)
    with pytest.raises(Error) as caught:
        check_pipeline_depth(Options().deviceIterations(3), 4, training=False)
    assert str(caught.value) == (
        "poptorch.Options().deviceIterations must be greater than or equal to the number of pipeline stages (4) when "
        "using PopTorch.PipelinedExecution."
    )


@pytest.mark.parametrize("strategy", [ShardedExecution(), SerialPhasedExecution("a")])
@pytest.mark.parametrize("training", [True, False])
def test_other_strategies_and_single_stages_need_no_minimum(strategy, training):
    check_pipeline_depth(Options().setExecutionStrategy(strategy), 4, training=training)
    check_pipeline_depth(Options(), 1, training=training)


def test_a_number_of_ipus_that_is_not_a_power_of_two_is_refused():
    expected = (
        "The model specifies the use of 3 IPUs, however PopTorch must reserve a minimum of 4 .*"
        r"set poptorch.Options\(\).autoRoundNumIPUs\(True\)"
    )
    with pytest.raises(Error, match=expected):
        check_ipu_count(Options(), [0, 2])
    assert check_ipu_count(Options().autoRoundNumIPUs(), [0, 2]) == 4


def test_replicas_need_their_own_ipus():
    assert check_ipu_count(Options().replicationFactor(4), [0, 1]) == 8
    assert check_ipu_count(Options(), []) == 1


def test_more_ipus_than_a_machine_has_are_refused():
    assert check_ipu_count(Options().replicationFactor(32), [0, 1]) == 64
    with pytest.raises(Error, match=r"Too many IPUs requested \(128\). Experiments that need more"):
        check_ipu_count(Options().replicationFactor(64), [0, 1])


@pytest.mark.parametrize("made", [Options().useIpuModel(True), Options().useOfflineIpuTarget()])
def test_without_attached_hardware_any_number_of_ipus_is_accepted(made):
    assert check_ipu_count(made, [0, 1, 2]) == 4
