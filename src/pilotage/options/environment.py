"""Every environment variable of Pilotage as data, and their reader."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from pilotage.errors import OptionError
from pilotage.options import quantities


@dataclass(frozen=True, kw_only=True, slots=True)
class Variable:
    """One environment variable of Pilotage."""

    name: str

    type: str
    """A description of the value."""

    default: str
    """A description of the default, if the variable is unset or empty; empty if there is none."""

    meaning: str
    """One sentence for the user."""

    is_internal: bool = False
    """Whether poprun sets it for its instances and users only read it."""

    @property
    def text(self) -> str | None:
        """The value; None if unset or empty."""
        return os.environ.get(self.name) or None


BACKEND = Variable(
    name="PILOTAGE_BACKEND",
    type="name",
    default="the best one present",
    meaning="The kind of device to run programs on, such as cpu, cuda or hpu.",
)
CARDS = Variable(
    name="PILOTAGE_CARDS",
    type="names, separated by commas",
    default="all that the backend sees",
    meaning="The devices that replicas and stages of this process may use.",
)
TIER = Variable(
    name="PILOTAGE_TIER",
    type="eager, graph or compiled",
    default="the fastest one available",
    meaning="How to execute programs: without capture, as a captured graph or as machine code.",
)
CHECK = Variable(
    name="PILOTAGE_CHECK",
    type="first, off or a number of calls",
    default="first, unless it would take too long or too much memory",
    meaning="When to compare a program with eager PyTorch: at its first call, never, or every n calls.",
)
LOG_LEVEL = Variable(
    name="PILOTAGE_LOG_LEVEL",
    type="DEBUG, INFO, WARNING, ERROR or CRITICAL",
    default="INFO",
    meaning="The lowest level of log lines to show.",
)
TRACEBACK = Variable(
    name="PILOTAGE_TRACEBACK",
    type="short or full",
    default="short",
    meaning="Which frames an error shows: your own, or those of Pilotage and torch too.",
)
IPU_AVAILABLE = Variable(
    name="PILOTAGE_IPU_AVAILABLE",
    type="0 or 1",
    default="0",
    meaning="Makes poptorch.ipuHardwareIsAvailable() True, for programs that do nothing without an IPU.",
)
CACHE_DIR = Variable(
    name="PILOTAGE_CACHE_DIR",
    type="directory, or off",
    default="$XDG_CACHE_HOME/pilotage/executables",
    meaning="Where to keep compiled programs and the emulated Gaudi card's library; off keeps no programs.",
)
CACHE_SIZE = Variable(
    name="PILOTAGE_CACHE_SIZE",
    type="size with its unit, or off",
    default="10GiB",
    meaning="How much compiled code one cache directory may hold; off removes the limit.",
)
CACHE_AGE = Variable(
    name="PILOTAGE_CACHE_AGE",
    type="duration with its unit, or off",
    default="90d",
    meaning="How long to keep compiled code that is not used; off removes the limit.",
)
RUN_DIR = Variable(
    name="PILOTAGE_RUN_DIR",
    type="directory, or off",
    default="$XDG_RUNTIME_DIR/pilotage",
    meaning="Where processes announce themselves to `pilotage monitor`; off announces nothing.",
)
EXCHANGE_TIMEOUT = Variable(
    name="PILOTAGE_EXCHANGE_TIMEOUT",
    type="whole number of seconds",
    default="120",
    meaning="How long to wait for a silent instance before giving it up; poprun sets it from --exchange-timeout.",
)
REMOTE_SHELL = Variable(
    name="PILOTAGE_REMOTE_SHELL",
    type="command",
    default="srun inside a SLURM allocation, otherwise ssh",
    meaning="The command with which poprun starts instances on other hosts; it gets the host and a shell command line.",
)
HOST_SUBNET = Variable(
    name="PILOTAGE_HOST_SUBNET",
    type="network, such as 10.1.0.0/16",
    default="the one with the route to the first instance",
    meaning="The network between the hosts; poprun sets it from --host-subnet.",
)
RESTART = Variable(
    name="PILOTAGE_RESTART",
    type="whole number",
    default="",
    meaning="How many times poprun has restarted the job; 0 in the first attempt.",
    is_internal=True,
)
STAGE = Variable(
    name="PILOTAGE_STAGE",
    type="whole number",
    default="",
    meaning="The pipeline stage of this process, if an instance is one process per stage.",
    is_internal=True,
)
JOB_DIRECTORY = Variable(
    name="PILOTAGE_JOB_DIRECTORY",
    type="directory",
    default="",
    meaning="The private directory in which the instances of a job on one host meet.",
    is_internal=True,
)
PROOF = Variable(
    name="PILOTAGE_PROOF",
    type="settings as text",
    default="",
    meaning="The settings of `pilotage prove` for the processes that it watches; not set by users.",
)

DEVICE_MODELS = Variable(
    name="PILOTAGE_DEVICE_MODELS",
    type="folder",
    default="only those of Pilotage",
    meaning="A folder with models of further devices for `pilotage predict`, one file in TOML for each.",
)

VARIABLES = (
    BACKEND,
    CARDS,
    TIER,
    CHECK,
    LOG_LEVEL,
    TRACEBACK,
    IPU_AVAILABLE,
    CACHE_DIR,
    CACHE_SIZE,
    CACHE_AGE,
    RUN_DIR,
    EXCHANGE_TIMEOUT,
    REMOTE_SHELL,
    HOST_SUBNET,
    RESTART,
    STAGE,
    JOB_DIRECTORY,
    PROOF,
    DEVICE_MODELS,
)
"""All variables of the core, in the order in which a table shows them."""

MAX_EXCHANGE_SECONDS = 31_536_000
"""The longest exchange timeout: a year."""

_NO_LIMIT = ", or off for no limit"


def backend() -> str | None:
    """The backend in PILOTAGE_BACKEND."""
    return BACKEND.text


def cards() -> tuple[str, ...] | None:
    """The devices in PILOTAGE_CARDS."""
    return tuple(name.strip() for name in CARDS.text.split(",")) if CARDS.text else None


def device_models() -> Path | None:
    """The folder of the user's device models in PILOTAGE_DEVICE_MODELS."""
    return Path(DEVICE_MODELS.text) if DEVICE_MODELS.text else None


def proof() -> str | None:
    """The settings of `pilotage prove` for this process, in PILOTAGE_PROOF."""
    return PROOF.text


def tier() -> str | None:
    """The tier in PILOTAGE_TIER."""
    return TIER.text


def check() -> str | None:
    """When to compare programs with eager PyTorch, from PILOTAGE_CHECK."""
    return CHECK.text


def log_level() -> str:
    """The level in PILOTAGE_LOG_LEVEL, or INFO."""
    level = (LOG_LEVEL.text or LOG_LEVEL.default).upper()
    known = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
    if level not in known:
        raise OptionError(f"{LOG_LEVEL.name} is {level!r}. Choose one of: {', '.join(known)}.")
    return level


def shows_full_tracebacks() -> bool:
    """Whether PILOTAGE_TRACEBACK asks for every frame of an error; any word but ``full`` shortens it."""
    return (TRACEBACK.text or TRACEBACK.default).strip().lower() == "full"


def ipus_are_pretended() -> bool:
    """Whether PILOTAGE_IPU_AVAILABLE asks for an answer as on a machine with IPUs."""
    text = (IPU_AVAILABLE.text or IPU_AVAILABLE.default).strip()
    if text not in ("0", "1"):
        raise OptionError(f"{IPU_AVAILABLE.name} is {text!r}. It must be 0 or 1.")
    return text == "1"


def cache_directory() -> Path:
    """The user's cache for Pilotage: $XDG_CACHE_HOME/pilotage, or ~/.cache/pilotage."""
    value = os.environ.get("XDG_CACHE_HOME")
    # The XDG specification says to ignore a relative path.
    base = Path(value) if value and os.path.isabs(value) else Path.home() / ".cache"
    return base / "pilotage"


def executable_cache() -> Path | None:
    """Where to keep compiled programs: PILOTAGE_CACHE_DIR, or the user's cache; None if it is ``off``."""
    value = CACHE_DIR.text
    if value and value.lower() == "off":
        return None
    return Path(value).expanduser() if value else cache_directory() / "executables"


def emulation_cache() -> Path:
    """Where to keep the library of the emulated Gaudi card: PILOTAGE_CACHE_DIR, or the user's cache.

    ``off`` is about compiled programs; the library is always kept, because building it takes half a minute.
    """
    value = CACHE_DIR.text
    is_named = value is not None and value.lower() != "off"
    return (Path(value).expanduser().absolute() if value and is_named else cache_directory()) / "gaudi"


def cache_size() -> int | None:
    """Bytes of compiled code that one directory may hold: PILOTAGE_CACHE_SIZE, or 10 GiB; None for no limit."""
    value = CACHE_SIZE.text or CACHE_SIZE.default
    return None if value.lower() == "off" else quantities.size(value, CACHE_SIZE.name, _NO_LIMIT)


def cache_age() -> float | None:
    """Seconds to keep unused compiled code: PILOTAGE_CACHE_AGE, or 90 days; None for no limit."""
    value = CACHE_AGE.text or CACHE_AGE.default
    return None if value.lower() == "off" else quantities.duration(value, CACHE_AGE.name, _NO_LIMIT)


def run_directories() -> tuple[Path, ...]:
    """Where processes announce themselves, best first: PILOTAGE_RUN_DIR, or the user's runtime directories.

    Empty if the variable is ``off``. There are several because a batch job may lack the variables that a login sets.
    """
    if value := RUN_DIR.text:
        return () if value.lower() == "off" else (Path(value).expanduser().absolute(),)
    named, user = os.environ.get("XDG_RUNTIME_DIR"), os.geteuid()
    bases = [named] if named and os.path.isabs(named) else []
    directories = [Path(base) / "pilotage" for base in (*bases, f"/run/user/{user}")]
    # Memory comes before disk, where replacing a file takes ten times as long.
    return tuple(dict.fromkeys([*directories, Path(f"/dev/shm/pilotage-{user}"), Path(f"/tmp/pilotage-{user}")]))


def exchange_timeout() -> timedelta:
    """How long to wait for a silent instance: PILOTAGE_EXCHANGE_TIMEOUT, or 120 seconds."""
    text = (EXCHANGE_TIMEOUT.text or EXCHANGE_TIMEOUT.default).strip() or EXCHANGE_TIMEOUT.default
    try:
        seconds = int(text)
    except ValueError:
        raise OptionError(
            f"The environment variable {EXCHANGE_TIMEOUT.name} is {text!r}. It must be a whole number."
        ) from None
    if not 1 <= seconds <= MAX_EXCHANGE_SECONDS:
        raise OptionError(
            f"{EXCHANGE_TIMEOUT.name} is {seconds}. It must be at least 1 second and at most {MAX_EXCHANGE_SECONDS}."
        )
    return timedelta(seconds=seconds)


def cpp_compiler() -> str:
    """The C++ compiler that torch's Inductor calls on Linux: CXX, or g++."""
    return os.environ.get("CXX") or "g++"


def allocator_is_configured() -> bool:
    """Whether the user has configured the C library's memory allocator by MALLOC_… or GLIBC_TUNABLES."""
    return any(name.startswith("MALLOC_") for name in os.environ) or "malloc" in os.environ.get("GLIBC_TUNABLES", "")


def gaudi_is_lazy() -> bool:
    """Whether PT_HPU_LAZY_MODE asks Habana's bridge for lazy mode; 0, the default, and 2 are eager."""
    return os.environ.get("PT_HPU_LAZY_MODE") == "1"


def for_child(**changes: str) -> dict[str, str]:
    """This process's environment with changes, for a child process."""
    return {**os.environ, **changes}


def set_for_native_code(name: str, value: str) -> None:
    """Set a variable that native code reads later."""
    os.environ[name] = value
