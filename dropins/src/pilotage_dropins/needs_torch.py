"""Importing this before anything that needs torch says what to install where torch is missing."""

from __future__ import annotations

from pilotage.engine import torch_needed_by

with torch_needed_by("pilotage-dropins (poptorch, popdist, habana_frameworks)", distribution="pilotage-dropins"):
    import torch as torch
