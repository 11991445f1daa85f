"""The original's command line: python bin/exec.py mode=train run.id=first network=a21."""

from __future__ import annotations

import sys

from cosmictagger.command import main

if __name__ == "__main__":
    sys.exit(main())
