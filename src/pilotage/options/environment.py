"""The only reader of environment variables in the core, besides ``distributed/``."""

from __future__ import annotations

import os
from pathlib import Path

from pilotage.errors import OptionError
from pilotage.options import quantities

_NO_LIMIT = ", or off for no limit"


def cache_directory() -> Path:
    """The user's own cache for Pilotage: $XDG_CACHE_HOME/pilotage, or ~/.cache/pilotage."""
    value = os.environ.get("XDG_CACHE_HOME")
    # The XDG specification asks that a relative path be ignored.
    base = Path(value) if value and os.path.isabs(value) else Path.home() / ".cache"
    return base / "pilotage"


def executable_cache() -> Path | None:
    """Where compiled code is kept: PILOTAGE_CACHE_DIR, or in the user's cache; None where it is ``off``."""
    value = os.environ.get("PILOTAGE_CACHE_DIR")
    if value and value.lower() == "off":
        return None
    return Path(value).expanduser() if value else cache_directory() / "executables"


def emulation_cache() -> Path:
    """Where the library of the emulated Gaudi card is kept."""
    return cache_directory() / "gaudi"


def cache_size() -> int | None:
    """How many bytes of compiled code one directory may hold: PILOTAGE_CACHE_SIZE, or 10 GiB; None where it is ``off``."""
    value = os.environ.get("PILOTAGE_CACHE_SIZE") or "10GiB"
    return None if value.lower() == "off" else quantities.size(value, "PILOTAGE_CACHE_SIZE", _NO_LIMIT)


def cache_age() -> float | None:
    """Seconds that compiled code is kept without being used: PILOTAGE_CACHE_AGE, or 90 days; None where it is ``off``."""
    value = os.environ.get("PILOTAGE_CACHE_AGE") or "90d"
    return None if value.lower() == "off" else quantities.duration(value, "PILOTAGE_CACHE_AGE", _NO_LIMIT)


def run_directories() -> tuple[Path, ...]:
    """Where processes announce themselves to the monitor, the best place first: PILOTAGE_RUN_DIR, or the user's own ones.

    None where it is ``off``. A process started by a batch system may lack what a login sets, so that there are several.
    """
    value = os.environ.get("PILOTAGE_RUN_DIR")
    if value:
        return () if value.lower() == "off" else (Path(value).expanduser().absolute(),)
    named, user = os.environ.get("XDG_RUNTIME_DIR"), os.geteuid()
    bases = [named] if named and os.path.isabs(named) else []
    places = [Path(base) / "pilotage" for base in (*bases, f"/run/user/{user}")]
    # In memory before on disk, where replacing a file takes ten times as long.
    return tuple(dict.fromkeys([*places, Path(f"/dev/shm/pilotage-{user}"), Path(f"/tmp/pilotage-{user}")]))


def of_child(**changes: str) -> dict[str, str]:
    """The environment for a process that is started from here."""
    return {**os.environ, **changes}


def leave(name: str, value: str) -> None:
    """Leave a message for native code that looks for it in the environment."""
    os.environ[name] = value


def cpp_compiler() -> str:
    """The C++ compiler that torch's Inductor calls on Linux: CXX, or g++."""
    return os.environ.get("CXX") or "g++"


def backend() -> str | None:
    """The backend that PILOTAGE_BACKEND asks for."""
    return os.environ.get("PILOTAGE_BACKEND") or None


def cards() -> tuple[str, ...] | None:
    """The devices that PILOTAGE_CARDS names, separated by commas."""
    value = os.environ.get("PILOTAGE_CARDS")
    return tuple(name.strip() for name in value.split(",")) if value else None


def tier() -> str | None:
    """The tier that PILOTAGE_TIER asks for."""
    return os.environ.get("PILOTAGE_TIER") or None


def log_level() -> str:
    """The level from which the engine's log lines are shown: PILOTAGE_LOG_LEVEL, or INFO."""
    level = (os.environ.get("PILOTAGE_LOG_LEVEL") or "INFO").upper()
    known = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
    if level not in known:
        raise OptionError(f"PILOTAGE_LOG_LEVEL is {level!r}. Choose one of: {', '.join(known)}.")
    return level


def gaudi_is_lazy() -> bool:
    """Whether PT_HPU_LAZY_MODE asks the vendor's bridge for lazy mode; 0, the default, and 2 are eager."""
    return os.environ.get("PT_HPU_LAZY_MODE") == "1"
