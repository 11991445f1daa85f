"""The command as the original had it: python bin/exec.py mode=train run.id=first network=a21."""

from __future__ import annotations

import sys

from cosmictagger.command import main

sys.exit(main())
