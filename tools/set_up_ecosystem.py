"""Prepare the environment of `make test-ecosystem`: python tools/set_up_ecosystem.py .venv-ecosystem.

It has optimum-habana from PyPI, Pilotage with its drop-ins, and the distribution that tells pip the version of
Habana's bridge.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from set_up import ROOT, SetUpError, create, pip_install

REQUIREMENTS = ROOT / "requirements-ecosystem.txt"
VERSION = ROOT / "dropins" / "gaudi-version"


def main() -> int:
    """Create the environment unless it is complete, and report a failure in one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environment", type=Path, help="folder of the virtual environment")
    environment: Path = parser.parse_args().environment.absolute()
    done = environment / ".ready"
    if done.exists() and done.read_text() == REQUIREMENTS.read_text():
        return 0
    try:
        create(environment, share_packages=False)
        pip_install(environment, "--requirement", str(REQUIREMENTS))
        pip_install(environment, "--no-deps", "--editable", str(ROOT), "--editable", str(ROOT / "dropins"))
        # Not editable: pip lists the path of such packages behind their versions, which optimum-habana cannot parse.
        pip_install(environment, "--no-deps", str(VERSION))
        subprocess.run([environment / "bin" / "python", "-m", "habana_frameworks.build"], check=True)
    except (SetUpError, subprocess.CalledProcessError) as error:
        print(f"set-up failed: {error}", file=sys.stderr)
        return 1
    done.write_text(REQUIREMENTS.read_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
