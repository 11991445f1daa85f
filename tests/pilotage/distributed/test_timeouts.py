"""How long a silent instance is borne."""

from __future__ import annotations

from datetime import timedelta

import pytest

import pilotage
from pilotage.errors import OptionError


def test_the_patience_with_silent_processes_is_poprun_s(monkeypatch):
    monkeypatch.delenv("PILOTAGE_EXCHANGE_TIMEOUT", raising=False)
    assert pilotage.exchange_timeout() == timedelta(seconds=120)
    monkeypatch.setenv("PILOTAGE_EXCHANGE_TIMEOUT", "30")
    assert pilotage.exchange_timeout() == timedelta(seconds=30)


@pytest.mark.parametrize("given", ["soon", "0"])
def test_a_time_that_is_none_is_refused(monkeypatch, given):
    monkeypatch.setenv("PILOTAGE_EXCHANGE_TIMEOUT", given)
    with pytest.raises(OptionError, match="PILOTAGE_EXCHANGE_TIMEOUT"):
        pilotage.exchange_timeout()
