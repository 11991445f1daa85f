"""Writes the ports in `examples/porting/styles`, which a test keeps current.

Run ``python -m tools.port_examples`` after a rule has changed.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STYLES = ROOT / "examples/porting/styles"
PORTS = (
    ("script/before.py", "poptorch", "script/after_poptorch.py"),
    ("trainer/before.py", "pilotage", "trainer/after_pilotage.py"),
    ("package/before", "hpu", "package/after_hpu"),
)
"""What is ported, to what, and where the port is."""


def ports() -> dict[Path, str]:
    """The text of every ported file."""
    from pilotage.porting.driver import port_paths
    from pilotage.porting.target import Target

    texts: dict[Path, str] = {}
    for before, target, after in PORTS:
        origin, place = STYLES / before, STYLES / after
        for file in port_paths([origin], Target(target)).files:
            texts[place / file.path.relative_to(origin) if origin.is_dir() else place] = file.after
    return texts


def main() -> int:
    """Write them."""
    for path, text in ports().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
