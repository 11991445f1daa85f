"""Read numbers and addresses from environment variables."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from pilotage.errors import OptionError


def number(environment: Mapping[str, str], name: str, default: int | None = None) -> int:
    """The whole number in a variable, which has to be set unless there is a default."""
    text = environment.get(name, "").strip()
    if not text and default is not None:
        return default
    if not text:
        raise OptionError(f"The environment variable {name} is missing, though others of the same launcher are set.")
    try:
        return int(text)
    except ValueError:
        raise OptionError(f"The environment variable {name} is {text!r}. It must be a whole number.") from None


def master_address(environment: Mapping[str, str]) -> tuple[str | None, int | None]:
    """MASTER_ADDR and MASTER_PORT, where all instances meet."""
    address = environment.get("MASTER_ADDR") or None
    return address, (number(environment, "MASTER_PORT") if environment.get("MASTER_PORT") else None)


def is_on_one_host(environment: Mapping[str, str], address: str | None) -> bool:
    """Whether processes that meet at this address must be on one host, since it is a loopback address.

    Never in a Kubernetes pod: operators give the loopback address to the first process only.
    """
    if address is None or "KUBERNETES_SERVICE_HOST" in environment:
        return False
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def port_of_job(job: str) -> int:
    """A port that all instances derive from the job's ID, below the range for outgoing connections."""
    value = 0
    for byte in job.encode():
        value = (value * 31 + byte) % 12_000
    return 20_000 + value
