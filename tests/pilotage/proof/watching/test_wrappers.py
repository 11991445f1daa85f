import pytest

from pilotage.proof.watching.modules import ModuleWatch
from pilotage.proof.watching.optimizers import OptimizerWatch
from pilotage.proof.watching.programs import ProgramWatch
from pilotage.proof.watching.settings import WatchSettings
from pilotage.proof.watching.splitting.check import SplitCheck
from pilotage.proof.watching.watch import Watch
from pilotage.proof.watching.wrappers import WrapperWatch


@pytest.fixture
def watched(tmp_path):
    watch = Watch(WatchSettings(folder=str(tmp_path)))
    programs = ProgramWatch(watch, OptimizerWatch(watch), ModuleWatch(watch), SplitCheck(watch))
    return WrapperWatch(watch, programs)


def test_a_wrapper_is_recorded_with_the_line_that_makes_it(watched, line_of):
    wrap = watched._wrapping("poptorch.trainingModel", True, lambda model: model)
    wrap(object())  # makes a wrapper
    (found,) = watched._summary()["wrappers"]
    assert (found["line"], found["trains"], found["error"], found["calls"]) == (
        line_of("makes a wrapper"),
        True,
        None,
        0,
    )


def test_a_wrapper_that_fails_is_recorded_and_fails_as_before(watched):
    def fail(model):
        raise ValueError("no device")

    with pytest.raises(ValueError, match="no device"):
        watched._wrapping("poptorch.trainingModel", True, fail)(object())
    assert watched._summary()["wrappers"][0]["error"] == "ValueError: no device"


def test_a_wrapper_inside_of_another_counts_once(watched):
    inner = watched._wrapping("pilotage.training", True, lambda model: model)
    watched._wrapping("poptorch.trainingModel", True, inner)(object())
    assert [each["kind"] for each in watched._summary()["wrappers"]] == ["poptorch.trainingModel"]
