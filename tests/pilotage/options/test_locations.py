from __future__ import annotations

import pytest

from pilotage.errors import OptionError
from pilotage.options.locations import Locations


@pytest.mark.parametrize("field", ["activations", "optimizer", "shared_optimizer"])
def test_a_location_is_a_number_of_elements_or_none(field):
    assert getattr(Locations(**{field: 0}), field) == 0
    with pytest.raises(OptionError, match=f"{field} is -1"):
        Locations(**{field: -1})


def test_sharding_the_optimizer_does_not_use_the_host():
    assert not Locations(shared_optimizer=1).uses_host
    assert Locations(activations=1).uses_host
    assert Locations(optimizer=1).uses_host
