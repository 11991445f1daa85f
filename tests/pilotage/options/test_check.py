import pytest

from pilotage.errors import OptionError
from pilotage.options.check import Check, OnMismatch


def test_by_default_the_first_call_is_compared_unless_that_is_expensive(monkeypatch):
    monkeypatch.delenv("PILOTAGE_CHECK", raising=False)
    assert Check.of() == Check(period=None, is_off=False, is_explicit=False, on_mismatch=OnMismatch.RAISE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("first", Check(is_explicit=True)), ("off", Check(is_off=True)), ("OFF", Check(is_off=True)), ("7", Check.of(7))],
)
def test_the_environment_decides_where_no_option_does(monkeypatch, text, expected):
    monkeypatch.setenv("PILOTAGE_CHECK", text)
    assert Check.of() == expected
    assert Check.of("first") == Check(is_explicit=True)


@pytest.mark.parametrize("value", ["", "never", 0, -3, True, 1.5, "2.5"])
def test_another_value_is_refused(value):
    with pytest.raises(OptionError, match=r"'first'.*'off'.*whole number"):
        Check.of(value)


def test_a_bad_variable_is_named(monkeypatch):
    monkeypatch.setenv("PILOTAGE_CHECK", "sometimes")
    with pytest.raises(OptionError, match="PILOTAGE_CHECK is 'sometimes'"):
        Check.of()


def test_a_mismatch_raises_or_warns():
    assert Check.of("first", "warn").on_mismatch is OnMismatch.WARN
    with pytest.raises(OptionError, match="on_mismatch is 'cry'"):
        Check.of("first", "cry")
