import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

import poptorch
from poptorch._options_impl import OptionsDict, canonical, merged
from poptorch.enums import OutputMode
from poptorch.options import Options, TensorLocationSettings
from poptorch.poptorch_core import _validateOptions

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(OutputMode),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def a_group():
    return OptionsDict(count=1, name="a", ratio=0.5, table={}, mode=OutputMode.All)


def test_values_are_read_as_attributes_and_by_calling():
    group = a_group()
    assert group.count == group("count") == 1
    assert group.toDict() == {"count": 1, "name": "a", "ratio": 0.5, "table": {}, "mode": OutputMode.All}


def test_an_unknown_attribute_is_named():
    with pytest.raises(AttributeError, match=r"^Invalid attribute nonsense\.$"):
        _ = a_group().nonsense
    assert not hasattr(a_group(), "nonsense")


def test_set_changes_existing_options():
    assert a_group().set(count=2, name="b").toDict() == a_group().toDict() | {"count": 2, "name": "b"}


def test_set_refuses_unknown_options():
    with pytest.raises(AssertionError, match="Invalid option nonsense"):
        a_group().set(nonsense=1)


@pytest.mark.parametrize("change", [{"count": "2"}, {"name": 2}, {"ratio": "x"}, {"mode": 2}, {"table": []}])
def test_a_value_of_another_type_is_refused(change):
    with pytest.raises(AssertionError, match="Unexpected type"):
        a_group().set(**change)


def test_assigning_an_attribute_sets_the_option():
    group = a_group()
    group.count = 7
    assert group.toDict()["count"] == 7
    with pytest.raises(AssertionError, match="Unexpected type"):
        group.count = "7"
    with pytest.raises(AssertionError, match="Invalid option"):
        group.nonsense = 7


def test_enum_values_are_stored_as_plain_numbers():
    assert repr(a_group().set(count=OutputMode.All)) == repr(a_group().set(count=2))


def test_options_can_be_created_and_removed():
    group = a_group().createOrSet(extra="x", count=3)
    assert group.exists("extra")
    assert (group.extra, group.count) == ("x", 3)
    with pytest.raises(AssertionError, match="Unexpected type"):
        group.createOrSet(extra=1)
    group.deleteIfExists("extra").deleteIfExists("extra")
    assert not group.exists("extra")


def test_updating_adds_the_options_to_a_dictionary():
    other = {"theirs": 1}
    assert OptionsDict(ours=2).update(other) is other
    assert other == {"theirs": 1, "ours": 2}


def test_dictionaries_with_a_key_in_common_are_not_merged():
    with pytest.raises(AssertionError, match="keys in common: ours"):
        OptionsDict(ours=2).update({"ours": 2})
    with pytest.raises(AssertionError, match="keys in common"):
        merged({"a": 1}, {"a": 1})


def test_private_attributes_are_only_created_during_construction():
    class Group(OptionsDict):
        def __init__(self):
            self._before = 1
            super().__init__(count=1)
            self._after = 2

    group = Group()
    group._after = 3
    assert (group._before, group._after) == (1, 3)
    with pytest.raises(AttributeError, match="Invalid attribute _new"):
        group._new = 1


CHANGES = {
    "set": lambda group: group.set(count=2),
    "assignment": lambda group: setattr(group, "count", 2),
    "private assignment": lambda group: setattr(group, "_values", {}),
    "createOrSet": lambda group: group.createOrSet(extra=1),
    "deleteIfExists": lambda group: group.deleteIfExists("count"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_frozen_group_cannot_be_changed(change):
    group = a_group()
    group._freeze()
    before = repr(group)
    with pytest.raises(AttributeError, match="Can't modify frozen Options"):
        CHANGES[change](group)
    with pytest.raises(AttributeError, match="Can't modify frozen Options"):
        group.checkIsFrozen()
    assert repr(group) == before
    group._unfreeze()
    CHANGES[change](group)


def test_nested_groups_are_frozen_too():
    class Whole(OptionsDict):
        def __init__(self):
            self._part = a_group()
            super().__init__()

    whole = Whole()
    whole._freeze()
    with pytest.raises(AttributeError, match="frozen"):
        whole._part.set(count=2)
    whole._unfreeze()
    whole._part.set(count=2)


def test_a_copy_is_independent_and_can_be_changed():
    group = a_group()
    group._freeze()
    duplicate = copy.deepcopy(group)
    duplicate.set(count=2).table["x"] = 1
    assert group.toDict() == a_group().toDict()


def test_pickling_keeps_values_and_frozen_state():
    group = a_group().createOrSet(extra=[1])
    group._freeze()
    restored = pickle.loads(pickle.dumps(group))
    assert repr(restored) == repr(group)
    with pytest.raises(AttributeError, match="frozen"):
        restored.set(count=2)


class Renamed(OptionsDict):
    def count_twice(self):
        return 2 * self.count


@pytest.mark.parametrize("frozen", [True, False])
def test_the_class_can_be_reassigned(frozen):
    group = a_group()
    if frozen:
        group._freeze()
    group.__class__ = Renamed
    assert group.count_twice() == 2


@given(st.dictionaries(st.sampled_from("abcdef"), VALUES), st.randoms())
def test_the_text_does_not_depend_on_the_order_of_settings(values, random):
    shuffled = list(values.items())
    random.shuffle(shuffled)
    assert repr(a_group().createOrSet(**values)) == repr(a_group().createOrSet(**dict(shuffled)))
    assert canonical(values) == canonical(dict(shuffled))


@given(VALUES, VALUES)
def test_equal_values_have_equal_texts(one, other):
    if canonical(one) == canonical(other):
        assert one == other
    assert canonical(copy.deepcopy(one)) == canonical(one)


def test_sets_are_shown_in_one_order():
    assert canonical({3, 1, 2}) == canonical({2, 3, 1}) == "{1, 2, 3}"
    assert canonical(set()) == "set()"


@pytest.mark.parametrize(
    ("mistake", "suggestion"),
    [
        (lambda options: options.deviceIteration(3), "Did you mean deviceIterations?"),
        (lambda options: options.replicationfactor(3), "Did you mean replicationFactor?"),
        (lambda options: options.gradientAccumulation(3), "Did you mean Training.gradientAccumulation?"),
        (lambda options: options.training, "Did you mean Training?"),
        (lambda options: options.Training.gradientAccumulations(3), "Did you mean gradientAccumulation?"),
        (lambda options: options.Precision.enableStochasticRoundings(True), "Did you mean enableStochasticRounding?"),
        (lambda options: options.Distributed.configureProcessID, "Did you mean configureProcessId?"),
        (lambda options: options.TensorLocations.setWeightsLocation, "Did you mean setWeightLocation?"),
        (lambda options: options.Jit.traceModels(False), "Did you mean traceModel?"),
        (lambda options: options._Popart.setPattern({}), "Did you mean setPatterns?"),
        (lambda options: TensorLocationSettings().useOnChipStorages(), "Did you mean useOnChipStorage?"),
        (lambda options: options.from_json('{"deviceIteration": 3}'), "Did you mean deviceIterations?"),
        (lambda options: options.from_json('{"_popart.set": ["a", 1]}'), "Did you mean _Popart?"),
    ],
)
def test_an_unknown_option_is_answered_with_the_one_that_was_probably_meant(mistake, suggestion):
    with pytest.raises(AttributeError, match="Invalid attribute") as caught:
        mistake(Options())
    assert str(caught.value).endswith(suggestion)


def test_setting_an_unknown_value_suggests_a_known_one():
    with pytest.raises(AssertionError, match=r"Invalid option device_iteration\. .* Did you mean device_iterations\?$"):
        Options().set(device_iteration=3)


def test_an_unknown_option_of_popart_suggests_a_known_one():
    for mistaken, meant in {
        "outlineTreshold": "outlineThreshold",
        "automaticLossScalingSettings.enable": "automaticLossScalingSettings.enabled",
    }.items():
        with pytest.raises(poptorch.Error, match=rf"Unknown int option {mistaken}\. Did you mean {meant}\?$"):
            _validateOptions({mistaken: 1})
