import pytest

from pilotage.cli.doctor.engine import TOLERANCE
from pilotage.cli.doctor.trial import largest_difference


@pytest.mark.parametrize("tier", ["graph", "eager"])
def test_the_engine_trains_as_eager_pytorch_does_on_every_tier(monkeypatch, tier):
    monkeypatch.setenv("PILOTAGE_TIER", tier)
    assert largest_difference() <= TOLERANCE / 100
