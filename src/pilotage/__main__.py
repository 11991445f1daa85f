"""Lets `python -m pilotage` do what the command `pilotage` does."""

from __future__ import annotations

import sys

from pilotage.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
