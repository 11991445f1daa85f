import pytest

from poptorch._logging import setLogLevel
from poptorch.enums import OutputMode
from poptorch.options import Options


@pytest.mark.parametrize("mode", [OutputMode.Final, OutputMode.All, OutputMode.Sum])
def test_an_output_mode_is_stored_as_a_number(mode):
    options = Options().outputMode(mode)
    assert (options.output_mode, options.output_return_period) == (mode, 1)
    assert type(options.output_mode) is int
    assert not options.defaultOutputMode()


def test_the_output_mode_is_default_at_first():
    assert Options().defaultOutputMode()
    assert Options().outputMode(OutputMode.All).outputMode(OutputMode.Default).defaultOutputMode()


def test_the_period_of_every_n_is_stored():
    options = Options().outputMode(OutputMode.EveryN, output_return_period=10)
    assert (options.output_mode, options.output_return_period) == (OutputMode.EveryN, 10)


@pytest.mark.parametrize("period", [None, 0, -1, 1.5, "2"])
def test_every_n_needs_a_positive_period(period):
    with pytest.raises(AssertionError, match="EveryN needs a period"):
        Options().outputMode(OutputMode.EveryN, period)
    with pytest.raises(AssertionError, match="EveryN needs a period"):
        Options().anchorTensor("short", "long", OutputMode.EveryN, period)


@pytest.mark.parametrize("mode", [2, "All", None])
def test_an_output_mode_must_be_an_enum(mode):
    with pytest.raises(AssertionError, match=r"poptorch.OutputMode"):
        Options().outputMode(mode)


def test_a_period_without_every_n_is_ignored_with_a_warning(caplog):
    setLogLevel("INFO")
    try:
        options = Options().outputMode(OutputMode.All, 3)
    finally:
        setLogLevel("WARN")
    assert options.output_return_period == 1
    assert [record.levelname for record in caplog.records] == ["INFO"]


def test_a_later_mode_resets_the_period():
    assert Options().outputMode(OutputMode.EveryN, 3).outputMode(OutputMode.All).output_return_period == 1


def test_the_old_name_of_the_output_mode_works():
    assert repr(Options().anchorMode(OutputMode.EveryN, 3)) == repr(Options().outputMode(OutputMode.EveryN, 3))


def test_anchors_need_two_names():
    options = Options()
    assert options.anchorTensor("follows", "first") is None
    options.anchorTensor("sum", "second", OutputMode.Sum, 5)
    options.anchorTensor("every", "third", output_mode=OutputMode.EveryN, output_return_period=2)
    assert options.anchored_tensors == {
        "follows": ["first", True, None, 1],
        "sum": ["second", False, OutputMode.Sum, 1],
        "every": ["third", False, OutputMode.EveryN, 2],
    }


def test_the_mode_of_an_anchor_must_be_an_enum():
    with pytest.raises(AssertionError, match=r"poptorch.OutputMode"):
        Options().anchorTensor("short", "long", 2)
    with pytest.raises(AssertionError, match="two names"):
        Options().anchorTensor("short", 2)
