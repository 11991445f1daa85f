"""Run the correctness tests on the card of this machine.

python tools/test_on_card.py [--processes N] [arguments of pytest]

Programs run on the best device present, so on a machine with a card nearly every test runs there. Only torch, numpy and
pytest are needed; pytest-xdist, if installed, divides the tests among processes.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("tests/pilotage", "tests/poptorch")
# Tests that do not concern cards.
ELSEWHERE = ("tests/pilotage/cli",)
# The status of pytest if no test was selected.
NO_TESTS = 5
# Slow tests about cards: compiled code, several devices of one process.
ON_CARDS = (
    "tests/pilotage/equals_eager/test_on_cards.py",
    "tests/pilotage/strategies",
    "tests/pilotage/compiler/rewrites",
    "tests/pilotage/compiler/test_lowerings_draws.py",
    "tests/poptorch/test__poplar_executor_on_cards.py",
)


def main() -> int:
    """Run the tests; the status is pytest's."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=max(1, min(12, len(os.sched_getaffinity(0)) - 2)))
    arguments, words = parser.parse_known_args()
    import torch

    if not torch.cuda.is_available():
        print("No card found: torch.cuda.is_available() is False.", file=sys.stderr)
        return 2
    start = time.monotonic()
    # Tests of one file share fixtures; tests that compile are distributed one by one.
    quick = _run("not slow and not long", FOLDERS, "loadfile", arguments.processes, words)
    slow = _run("slow and not long", ON_CARDS, "worksteal", arguments.processes, words)
    print(f"On {torch.cuda.get_device_name()}, torch {torch.__version__}: {time.monotonic() - start:.0f} s.")
    # Arguments of the user may deselect all tests of one of the two.
    states = {quick, slow} - {NO_TESTS} or {NO_TESTS}
    return max(states)


def _run(marks: str, paths: tuple[str, ...], sharing: str, processes: int, words: list[str]) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:benchmark", "-m", marks]
    command += [f"--ignore={folder}" for folder in ELSEWHERE]
    if importlib.util.find_spec("xdist") is not None:
        command += ["-n", str(processes), "--dist", sharing]
    found = [ROOT / "src", ROOT / "dropins" / "src", ROOT, *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, map(str, found))), "OMP_NUM_THREADS": "1"}
    return subprocess.run([*command, *words, *paths], cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
