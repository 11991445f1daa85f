"""Hostile files: the machinery is in `hostile/`, which the sandbox's own process imports too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
