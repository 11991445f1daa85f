"""Loading of the bridge together with torch."""

from __future__ import annotations

import os

is_loaded = False
"""Whether the bridge is imported."""


def is_autoload_enabled() -> bool:
    """Whether torch loads the bridge by itself; the emulation only if PT_HPU_AUTOLOAD=1 asks for it."""
    return os.environ.get("PT_HPU_AUTOLOAD") == "1"
