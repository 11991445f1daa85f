"""python -m cosmictagger."""

from __future__ import annotations

import sys

from cosmictagger.command import main

if __name__ == "__main__":
    sys.exit(main())
