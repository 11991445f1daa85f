"""Says what to install where torch is missing; imported before all modules that need torch."""

from __future__ import annotations

from pilotage_dropins import needs_torch as needs_torch
