import pickle

import pytest

from poptorch.options import Options, TensorLocationSettings


@pytest.mark.parametrize("count", [32, 64, 192])
def test_tiles_for_transfers_are_counted(count):
    assert Options().TensorLocations.numIOTiles(count).toDict()["numIOTiles"] == count


@pytest.mark.parametrize("count", [30, 33, 194, 0, "32", 32.0])
def test_tiles_for_transfers_are_even_and_within_bounds(count):
    with pytest.raises(AssertionError, match=r"numIOTiles must be an even number between 32 and 192\."):
        Options().TensorLocations.numIOTiles(count)


@pytest.mark.parametrize("kind", ["activation", "weight", "optimizer", "accumulator"])
def test_each_kind_of_tensor_has_its_location(kind):
    locations = Options().TensorLocations
    setter = getattr(locations, f"set{kind.capitalize()}Location")
    assert setter(TensorLocationSettings().useOnChipStorage(False).minElementsForOffChip(4)) is locations
    assert locations.toDict()[f"location_{kind}"] == {"onChip": 0, "minElementsForOffChip": 4}
    assert sum(bool(value) for value in locations.toDict().values()) == 1
    for wrong in ({"onChip": 0}, None, TensorLocationSettings):
        with pytest.raises(AssertionError, match=r"poptorch.TensorLocationSettings"):
            setter(wrong)


@pytest.mark.parametrize(
    ("method", "key"),
    [
        ("useOnChipStorage", "onChip"),
        ("useReplicatedTensorSharding", "useReplicatedTensorSharding"),
        ("useIOTilesToLoad", "useIOTilesToLoad"),
        ("useIOTilesToStore", "useIOTilesToStore"),
    ],
)
def test_a_switch_is_on_by_default(method, key):
    assert getattr(TensorLocationSettings(), method)().toDict() == {key: 1}
    assert getattr(TensorLocationSettings(), method)(False).toDict() == {key: 0}
    with pytest.raises(AssertionError, match="True or False"):
        getattr(TensorLocationSettings(), method)(1)


def test_the_storage_can_be_reset_to_the_default():
    assert TensorLocationSettings().useOnChipStorage(True).useOnChipStorage(None).toDict() == {}


@pytest.mark.parametrize("method", ["minElementsForOffChip", "minElementsForReplicatedTensorSharding"])
def test_a_minimum_number_of_elements_must_be_a_whole_number(method):
    assert getattr(TensorLocationSettings(), method)(7).toDict() == {method: 7}
    with pytest.raises(AssertionError, match="whole number"):
        getattr(TensorLocationSettings(), method)("7")


def test_a_location_that_changes_later_does_not_change_the_options():
    location = TensorLocationSettings().minElementsForOffChip(1)
    options = Options()
    options.TensorLocations.setWeightLocation(location)
    location.minElementsForOffChip(2)
    assert options.TensorLocations.location_weight == {"minElementsForOffChip": 1}


def test_a_location_survives_pickling():
    location = TensorLocationSettings().useIOTilesToLoad()
    assert repr(pickle.loads(pickle.dumps(location))) == repr(location)
