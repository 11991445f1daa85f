"""The architectures are a package of their own, which several tests import."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
