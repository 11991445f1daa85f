"""Tests of the search for the loss; they share the classes in `model_outputs.py`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
