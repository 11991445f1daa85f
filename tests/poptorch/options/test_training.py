import pytest

from poptorch.enums import MeanReductionStrategy, ReductionType
from poptorch.options import Options


def test_the_defaults_are_those_of_poptorch():
    assert Options().Training.toDict() == {
        "gradient_accumulation": 1,
        "accumulation_and_replication_reduction_type": ReductionType.Mean,
        "meanAccumulationAndReplicationReductionStrategy": MeanReductionStrategy.Post,
    }


def test_accumulation_is_stored():
    training = Options().Training
    assert training.gradientAccumulation(8) is training
    assert training.gradient_accumulation == 8
    for wrong in ("8", 8.0, None, 0, -1):
        with pytest.raises(AssertionError, match="gradientAccumulation"):
            training.gradientAccumulation(wrong)


@pytest.mark.parametrize("reduction", [ReductionType.Mean, ReductionType.Sum])
def test_gradients_are_averaged_or_summed(reduction):
    training = Options().Training.accumulationAndReplicationReductionType(reduction)
    assert training.accumulation_and_replication_reduction_type is reduction


@pytest.mark.parametrize("reduction", [ReductionType.NoReduction, 1, "Mean", None])
def test_another_reduction_is_refused(reduction):
    with pytest.raises(ValueError, match=r"ReductionType.Mean or .Sum"):
        Options().Training.accumulationAndReplicationReductionType(reduction)


@pytest.mark.parametrize("strategy", MeanReductionStrategy)
def test_a_reduction_strategy_is_stored(strategy):
    training = Options().Training.setMeanAccumulationAndReplicationReductionStrategy(strategy)
    assert training.meanAccumulationAndReplicationReductionStrategy is strategy


def test_a_reduction_strategy_must_be_an_enum():
    with pytest.raises(AssertionError, match="Unexpected type"):
        Options().Training.setMeanAccumulationAndReplicationReductionStrategy(1)


def test_boolean_options_are_passed_on():
    options = Options()
    assert options.Training.setAutomaticLossScaling(True) is options.Training
    assert options.Training.setConvolutionDithering(False) is options.Training
    assert options._Popart.options["automaticLossScalingSettings.enabled"] is True
    assert options._Popart.options["convolutionOptions"] == {"enableConvDithering": "false"}
    for method in ("setAutomaticLossScaling", "setConvolutionDithering"):
        with pytest.raises(AssertionError, match="True or False"):
            getattr(options.Training, method)("yes")
