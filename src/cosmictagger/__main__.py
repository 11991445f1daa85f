"""python -m cosmictagger."""

from __future__ import annotations

import sys

from cosmictagger.command import main

sys.exit(main())
