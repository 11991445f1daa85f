"""A part of an IPU as a device model."""

import pytest

from pilotage.errors import OptionError
from pilotage.prediction.devices import device_model, with_tiles


def test_fewer_tiles_have_less_memory_and_arithmetic():
    whole = device_model("mk2")
    small = with_tiles(whole, 4)
    assert small.memory.capacity_bytes == 4 * 638_976
    assert small.compute.float32 == pytest.approx(whole.compute.float32 * 4 / 1472)
    assert small.traffic.memory == pytest.approx(whole.traffic.memory * 4 / 1472)
    assert small.host == whole.host
    assert small.title.startswith("4 tiles of")


@pytest.mark.parametrize(("name", "count"), [("h200", 4), ("mk2", 0), ("mk2", 1473)])
def test_tiles_that_are_not_there_are_refused(name, count):
    with pytest.raises(OptionError, match=f"has no {count} tiles"):
        with_tiles(device_model(name), count)
