"""Hostile files: the tools are in `hostile/`, which the sandbox process imports too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
