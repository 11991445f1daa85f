import pickle

import pytest
import torch

from poptorch import poptorch_core
from poptorch._logging import setLogLevel
from poptorch.enums import OutputMode
from poptorch.options import Options, PipelinedExecution, SerialPhasedExecution, TensorLocationSettings
from poptorch.poptorch_core import Error, RecoverableError, UnrecoverableError, _validateOptions


def test_all_errors_derive_from_one_class():
    assert issubclass(RecoverableError, Error)
    assert issubclass(UnrecoverableError, Error)
    assert issubclass(Error, Exception)


def test_an_error_has_its_layer_message_and_location():
    error = Error(
        "'poplar_link_error': no link\nbacktrace", type="poplar_link_error", message="no link", location="a.cpp"
    )
    assert (error.type, error.message, error.location) == ("poplar_link_error", "no link", "a.cpp")
    assert str(error).startswith("'poplar_link_error'")


def test_the_message_is_the_text_by_default():
    assert (Error("too bad").message, Error("too bad").location) == ("too bad", "")


@pytest.mark.parametrize("action", ["IPU_RESET", "LINK_RESET", "PARTITION_RESET", "FULL_RESET"])
def test_a_recoverable_error_says_how_to_recover(action):
    error = RecoverableError("it stopped", recovery_action=action)
    assert error.recovery_action == action
    assert error.type == "poplar_recoverable_runtime_error"


def test_an_unknown_recovery_action_is_refused():
    with pytest.raises(ValueError, match="FULL_RESET, IPU_RESET"):
        RecoverableError("it stopped", recovery_action="HOPE")


def test_an_unrecoverable_error_has_its_own_type():
    assert UnrecoverableError("gone").type == "poplar_unrecoverable_runtime_error"


def test_errors_survive_pickling():
    error = pickle.loads(pickle.dumps(RecoverableError("it stopped", recovery_action="LINK_RESET")))
    assert (str(error), error.recovery_action, error.message) == ("it stopped", "LINK_RESET", "it stopped")


def test_a_name_unknown_to_every_backend_is_refused():
    with pytest.raises(Error, match="Unknown bool option thisIsNotAnOption"):
        _validateOptions({"thisIsNotAnOption": True})


@pytest.mark.parametrize("value", [torch.zeros(1), object(), [torch.zeros(1)], {"a": torch.zeros(1)}])
def test_a_value_of_an_unsupported_type_is_refused(value):
    with pytest.raises(Error, match=r"Unknown value type .* for option cachePath"):
        _validateOptions({"cachePath": value})


def test_members_of_groups_of_settings_are_known():
    _validateOptions({"automaticLossScalingSettings.enabled": True})
    with pytest.raises(Error, match=r"Unknown int option cachePath.enabled"):
        _validateOptions({"cachePath.enabled": 1})


def test_every_option_that_can_be_set_is_known():
    options = Options().outputMode(OutputMode.All).randomSeed(1).modelName("m").useIpuModel(True).useIpuId(0)
    options.useOfflineIpuTarget(2).enableProfiling("p").updatableNamedBuffers(["b"]).enableStableNorm(True)
    options.enableSyntheticData(True).enableExecutableCaching("c").logCycleCount(True).runOn("cpu", tier="graph")
    options.runOn(nonfinite_loss="raise").setAvailableMemoryProportion({"IPU0": 0.5})
    options.anchorTensor("a", "b", OutputMode.All)
    options.Precision.enableFloatingPointExceptions(True).enableStochasticRounding(True).setPartialsType(torch.half)
    options.Training.setAutomaticLossScaling(True).setConvolutionDithering(True)
    options.TensorLocations.numIOTiles(32).setWeightLocation(TensorLocationSettings().useOnChipStorage(False))
    options._Popart.setPatterns({"a": True})
    for strategy in (PipelinedExecution(), SerialPhasedExecution("a")):
        known = options.setExecutionStrategy(strategy).toDict()
        _validateOptions(known)
        with pytest.raises(Error, match="Unknown bool option thisIsNotAnOption"):
            _validateOptions({**known, "thisIsNotAnOption": True})


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (True, "poptorch.Options set enableOutlining to value true"),
        (3, "poptorch.Options set enableOutlining to value 3"),
        (OutputMode.Sum, "poptorch.Options set enableOutlining to value 3"),
        (["x"], "poptorch.Options added x to enableOutlining"),
        ({2}, "poptorch.Options added 2 to enableOutlining"),
        ({"sub": False}, "poptorch.Options set enableOutlining[sub] to false"),
    ],
)
def test_each_setting_is_logged_at_debug(value, line, capsys):
    setLogLevel("DEBUG")
    try:
        _validateOptions({"enableOutlining": value})
    finally:
        setLogLevel("WARN")
    _validateOptions({"enableOutlining": value})
    [shown] = capsys.readouterr().err.splitlines()
    assert shown.endswith(f"[debug] {line}")


@pytest.mark.parametrize("name", poptorch_core.TestErrorType.__members__)
def test_errors_can_be_raised_as_each_layer_raises_them(name):
    types = {
        "Poptorch": "poptorch_cpp_error",
        "Popart": "popart_exception",
        "PopartInternal": "popart_internal_exception",
        "Poplibs": "poplibs_exception",
        "PoplarUnrecoverable": "poplar_unrecoverable_runtime_error",
        "PoplarUnknown": "poplar_unknown_error",
        "PoplarRecoverableFullReset": "poplar_recoverable_runtime_error",
        "PoplarLinkError": "poplar_link_error",
    }
    classes = {"PoplarUnrecoverable": UnrecoverableError, "PoplarRecoverableFullReset": RecoverableError}
    with pytest.raises(Error) as caught:
        poptorch_core._throwTestError(poptorch_core.TestErrorType[name])
    error = caught.value
    assert type(error) is classes.get(name, Error)
    assert error.type == types[name]
    for place in ("throwTestError::bottomLevel", "throwTestError::topLevel"):
        assert place in error.args[0]
        assert error.location.count(place) == 1
        assert place not in error.message
    assert error.message in error.args[0]
    assert error.message.endswith("-lfoo not found") == (name == "PoplarLinkError")
    if isinstance(error, RecoverableError):
        assert error.recovery_action == "FULL_RESET"
