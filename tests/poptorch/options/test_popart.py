import pytest

from poptorch.options import Options


def test_new_popart_options_have_two_defaults():
    assert Options()._Popart.options == {"instrumentWithHardwareCycleCounter": False, "rearrangeAnchorsOnHost": False}


@pytest.mark.parametrize("value", [1, "x", {"a": 1}, [1], object()])
def test_any_option_is_stored(value):
    popart = Options()._Popart
    assert popart.set("whatever", value) is popart
    assert popart.options["whatever"] is value


def test_engine_options_are_merged():
    popart = Options()._Popart.setEngineOptions({"a": "1", "b": "2"}).setEngineOptions({"b": "3"})
    assert popart.options["engineOptions"] == {"a": "1", "b": "3"}
    with pytest.raises(AssertionError, match="dictionary"):
        popart.setEngineOptions("a=1")


def test_patterns_have_a_level():
    popart = Options()._Popart.setPatterns({"PadSum": True})
    assert (popart.options["patterns"], popart.options["patterns_level"]) == ({"PadSum": True}, 2)
    assert popart.setPatterns({}, level=0).options["patterns_level"] == 0
    with pytest.raises(AssertionError, match="dictionary"):
        popart.setPatterns(["PadSum"])
    with pytest.raises(AssertionError, match="whole number"):
        popart.setPatterns({}, "2")


def test_the_text_does_not_depend_on_the_order():
    one = Options()._Popart.set("a", 1).set("b", {"x": 1, "y": 2})
    other = Options()._Popart.set("b", {"y": 2, "x": 1}).set("a", 1)
    assert repr(one) == repr(other)
