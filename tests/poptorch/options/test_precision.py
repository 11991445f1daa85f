import pytest
import torch
from torch import nn

import poptorch
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
def test_a_boolean_option_is_passed_on(method, key):
    options = Options()
    for value in (True, False):
        assert getattr(options.Precision, method)(value) is options.Precision
        assert options._Popart.options[key] is value
    with pytest.raises(AssertionError, match="True or False"):
        getattr(options.Precision, method)(1)


@pytest.mark.parametrize(("dtype", "name"), [(torch.float, "float"), (torch.half, "half")])
def test_partials_must_be_float_or_half(dtype, name):
    options = Options()
    assert options.Precision.setPartialsType(dtype) is options.Precision
    assert options._Popart.options["partialsTypeMatMuls"] == name
    assert options._Popart.options["convolutionOptions"] == {"partialsType": name}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int32, "half", None])
def test_partials_of_another_type_are_refused(dtype):
    with pytest.raises(ValueError, match="Invalid partials type"):
        Options().Precision.setPartialsType(dtype)


@pytest.mark.parametrize("partials_first", [True, False])
def test_options_of_convolutions_are_combined(partials_first):
    options = Options()
    calls = [
        lambda: options.Precision.setPartialsType(torch.half),
        lambda: options.Training.setConvolutionDithering(True),
    ]
    for call in calls if partials_first else reversed(calls):
        call()
    assert options._Popart.options["convolutionOptions"] == {"partialsType": "half", "enableConvDithering": "true"}


class Calling(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


FAILING = {
    "division by zero": (lambda x: 1 / x, 0.0, "reciprocal"),
    "infinity minus infinity": (lambda x: x - x, float("inf"), "sub"),
    "zero times infinity": (lambda x: x * 0, float("inf"), "mul"),
    "root of a negative number": (torch.sqrt, -1.0, "sqrt"),
    "comparison with NaN": (lambda x: x > 0, float("nan"), "gt"),
}


@pytest.mark.parametrize("case", FAILING)
def test_floating_point_exceptions_are_raised_on_request(case):
    function, value, name = FAILING[case]
    x = torch.full((2,), value)
    poptorch.inferenceModel(Calling(function))(x)
    options = Options()
    options.Precision.enableFloatingPointExceptions(True)
    model = poptorch.inferenceModel(Calling(function), options)
    with pytest.raises(poptorch.Error, match=rf"Floating point exception in aten\.{name}.*test_precision\.py:\d+"):
        model(x)
    ones = torch.ones(2)
    torch.testing.assert_close(model(ones), function(ones))


def test_an_exception_in_any_micro_batch_of_training_is_raised():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x):
            return poptorch.identity_loss(self.layer(x).square().log(), "sum")

    options = Options().deviceIterations(2)
    options.Training.gradientAccumulation(2)
    options.Precision.enableFloatingPointExceptions(True)
    torch.manual_seed(0)
    model = poptorch.trainingModel(Model(), options)
    loss = model(torch.ones(4, 2))
    assert loss.shape == ()
    x = torch.ones(4, 2)
    x[1] = float("inf")
    with pytest.raises(poptorch.Error, match="Floating point exception"):
        model(x)


def test_anchors_and_exceptions_can_be_combined():
    options = Options().deviceIterations(2)
    options.anchorTensor("sum", "add")
    options.Precision.enableFloatingPointExceptions(True)
    model = poptorch.inferenceModel(lambda x: torch.log(x + 1), options)
    x = torch.tensor([1.0, 2.0])
    torch.testing.assert_close(model(x), torch.log(x + 1))
    assert model.getAnchoredTensor("sum").tolist() == [2.0, 3.0]
    with pytest.raises(poptorch.Error, match=r"aten\.log"):
        model(torch.tensor([1.0, -1.0]))
