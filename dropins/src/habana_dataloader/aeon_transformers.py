"""The vendor's native loader, which the emulation does not have; programs fall back to torch's on ImportError."""

from __future__ import annotations

raise ImportError(f"{__name__} is part of the vendor's native loader, which needs the card. Use torch's DataLoader.")
