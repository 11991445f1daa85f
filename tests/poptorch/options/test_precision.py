import pytest
import torch

from poptorch.enums import HalfFloatCastingBehavior
from poptorch.options import Options


def test_casting_is_deprecated(caplog):
    options = Options()
    before = repr(options)
    assert options.Precision.halfFloatCasting(HalfFloatCastingBehavior.HalfUpcastToFloat) is options.Precision
    assert "deprecated" in caplog.text
    assert repr(options) == before


def test_running_statistics_are_deprecated(caplog):
    options = Options()
    before = repr(options)
    assert options.Precision.runningStatisticsAlwaysFloat(True) is options.Precision
    assert "deprecated" in caplog.text
    assert repr(options) == before
    with pytest.raises(ValueError, match="True or False"):
        options.Precision.runningStatisticsAlwaysFloat(1)


@pytest.mark.parametrize(
    ("method", "key"),
    [
        ("enableFloatingPointExceptions", "enableFloatingPointChecks"),
        ("enableStochasticRounding", "enableStochasticRounding"),
    ],
)
def test_a_switch_is_passed_on(method, key):
    options = Options()
    for value in (True, False):
        assert getattr(options.Precision, method)(value) is options.Precision
        assert options._Popart.options[key] is value
    with pytest.raises(AssertionError, match="True or False"):
        getattr(options.Precision, method)(1)


@pytest.mark.parametrize(("dtype", "name"), [(torch.float, "float"), (torch.half, "half")])
def test_partials_are_float_or_half(dtype, name):
    options = Options()
    assert options.Precision.setPartialsType(dtype) is options.Precision
    assert options._Popart.options["partialsTypeMatMuls"] == name
    assert options._Popart.options["convolutionOptions"] == {"partialsType": name}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int32, "half", None])
def test_partials_of_another_type_are_refused(dtype):
    with pytest.raises(ValueError, match="Invalid partials type"):
        Options().Precision.setPartialsType(dtype)


@pytest.mark.parametrize("partials_first", [True, False])
def test_options_of_convolutions_stand_side_by_side(partials_first):
    options = Options()
    calls = [
        lambda: options.Precision.setPartialsType(torch.half),
        lambda: options.Training.setConvolutionDithering(True),
    ]
    for call in calls if partials_first else reversed(calls):
        call()
    assert options._Popart.options["convolutionOptions"] == {"partialsType": "half", "enableConvDithering": "true"}
