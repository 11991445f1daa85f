"""How long an instance that stays silent in an exchange is borne."""

from __future__ import annotations

import os
from datetime import timedelta

from pilotage.distributed.environments.variables import number
from pilotage.errors import OptionError

EXCHANGE_TIMEOUT = "PILOTAGE_EXCHANGE_TIMEOUT"
"""The variable that poprun hands its option on by."""

MOST_SECONDS = 31_536_000
"""A year."""

_SECONDS = 120


def exchange_timeout() -> timedelta:
    """How long the others wait before they give it up."""
    seconds = number(os.environ, EXCHANGE_TIMEOUT, _SECONDS)
    if not 1 <= seconds <= MOST_SECONDS:
        raise OptionError(
            f"{EXCHANGE_TIMEOUT} is {seconds}. It has to be at least 1 second and at most {MOST_SECONDS}."
        )
    return timedelta(seconds=seconds)
