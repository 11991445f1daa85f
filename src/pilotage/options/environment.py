"""The only reader of environment variables in the core, besides ``distributed/``."""

from __future__ import annotations

import os
from pathlib import Path


def data_directory() -> Path | None:
    """Where PILOTAGE_DATA says that data sets lie, if it says so."""
    value = os.environ.get("PILOTAGE_DATA")
    return Path(value).expanduser() if value else None


def cache_directory() -> Path:
    """The user's own cache for Pilotage: $XDG_CACHE_HOME/pilotage, or ~/.cache/pilotage."""
    value = os.environ.get("XDG_CACHE_HOME")
    # The XDG specification asks that a relative path be ignored.
    base = Path(value) if value and os.path.isabs(value) else Path.home() / ".cache"
    return base / "pilotage"


def cpp_compiler() -> str:
    """The C++ compiler that torch's Inductor calls on Linux: CXX, or g++."""
    return os.environ.get("CXX") or "g++"


def backend() -> str | None:
    """The backend that PILOTAGE_BACKEND asks for."""
    return os.environ.get("PILOTAGE_BACKEND") or None


def tier() -> str | None:
    """The tier that PILOTAGE_TIER asks for."""
    return os.environ.get("PILOTAGE_TIER") or None
