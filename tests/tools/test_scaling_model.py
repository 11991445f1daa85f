from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.errors import OptionError
from tools.scaling_model import Scaling, fitted

POLARIS = {4: 13.42, 8: 26.44, 16: 52.77, 32: 101.7, 64: 208.0, 128: 350.7, 256: 685.2, 512: 1267.0, 1024: 1965.0}
"""Images per second of CosmicTagger with torch DDP on A100 cards, by number of ranks, as published."""

AT_1700 = 3097.0
"""Published too, but not part of the fit."""

SECONDS = st.floats(0, 1)


def test_the_model_matches_the_published_throughput_of_cosmictagger():
    model = fitted(POLARIS)
    errors = {ranks: model.throughput(ranks) / images - 1 for ranks, images in POLARIS.items()}
    assert max(map(abs, errors.values())) < 0.08, errors
    assert abs(model.throughput(1700) / AT_1700 - 1) < 0.16


@given(compute=st.floats(0.01, 1), per_doubling=st.floats(0, 0.1), per_instance=st.floats(0, 0.01))
def test_a_fit_recovers_the_parameters(compute, per_doubling, per_instance):
    truth = Scaling(compute=compute, per_doubling=per_doubling, per_instance=per_instance)
    found = fitted({count: truth.throughput(count, 4) for count in (1, 2, 8, 64, 256)}, samples=4)
    for count in (1, 16, 1024):
        assert found.seconds(count) == pytest.approx(truth.seconds(count), rel=1e-6)


@given(
    compute=st.floats(0.01, 1),
    exchange=SECONDS,
    overlap=st.floats(0, 1),
    per_doubling=SECONDS,
    per_instance=SECONDS,
    count=st.integers(1, 2000),
)
def test_more_instances_never_make_an_update_faster_and_overlap_never_slower(count, **parts):
    model = Scaling(**parts)
    assert model.seconds(count + 1) >= model.seconds(count) * (1 - 1e-12) >= 0
    assert model.efficiency(count) <= 1 + 1e-12
    assert Scaling(**parts | {"overlap": 1}).seconds(count) <= model.seconds(count)


def test_a_fully_overlapped_exchange_takes_no_time():
    assert Scaling(compute=0.1, exchange=0.05, overlap=0.6).seconds(1000) == 0.1
    assert Scaling(compute=0.1, exchange=0.05).seconds(1000) == pytest.approx(0.14995)


@pytest.mark.parametrize(
    ("parts", "message"), [({"compute": -1}, "compute is -1"), ({"compute": 1, "overlap": 2}, "overlap is 2")]
)
def test_invalid_parameters_are_refused(parts, message):
    with pytest.raises(OptionError, match=message):
        Scaling(**parts)
    with pytest.raises(OptionError, match="too few"):
        fitted({1: 1.0})
