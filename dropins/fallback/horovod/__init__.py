"""Horovod's name for programs that reduce losses and accuracies over the instances of a job.

Pilotage serves this package only if no Horovod is installed. `horovod.torch` has the collectives; frameworks other than
torch are missing.
"""

from __future__ import annotations

__version__ = "0.28.1"
"""The version whose interface `horovod.torch` follows."""

__pilotage_facade__ = True
"""Errors name the user's own line, and none of this package."""
