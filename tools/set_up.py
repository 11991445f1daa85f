"""Prepare the virtual environment that the targets of the Makefile run in: python tools/set_up.py .venv."""

from __future__ import annotations

import argparse
import importlib.util
import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIND_TORCH = "import importlib.metadata as m; print(next((d.version for d in m.distributions(name='torch')), ''))"


class SetUpError(Exception):
    """A problem that the user has to solve before the environment can be created."""


def main() -> int:
    """Run all steps, and report a failure in one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environment", type=Path, help="folder of the virtual environment")
    parser.add_argument("--torch", default="", help="requirement or wheel; default: the interpreter's own, or the pin")
    parser.add_argument("--extra", action="append", default=[], help="an extra to install; may be repeated")
    arguments = parser.parse_args()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # in a log, our lines stay among those of pip
    try:
        set_up(arguments.environment.absolute(), arguments.torch, arguments.extra)
    except SetUpError as error:
        print(f"set-up failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("set-up: interrupted; run `make setup` again to continue", file=sys.stderr)
        return 130
    return 0


def set_up(environment: Path, torch_requirement: str, extras: list[str]) -> None:
    """Create the environment, provide torch, and install both distributions without changing torch."""
    inherit = not torch_requirement and brings_torch(environment)
    create(environment, share_packages=inherit)
    if inherit:
        borrow_packages(environment)
        print(f"set-up: keeping the torch {installed_torch(environment)} that {sys.executable} brings")
    elif torch_requirement or not installed_torch(environment):
        install_torch(environment, torch_requirement)
    install_packages(environment, extras)
    print(f"set-up: done. Activate the environment with: source {environment / 'bin/activate'}")


def brings_torch(environment: Path) -> bool:
    """Whether the running interpreter has its own torch, such as a vendor's build."""
    return Path(sys.prefix) != environment and importlib.util.find_spec("torch") is not None


def create(environment: Path, *, share_packages: bool) -> None:
    """Create the virtual environment unless a working one exists."""
    python = environment / "bin" / "python"
    if python.exists() and subprocess.run([python, "-m", "pip", "--version"], capture_output=True).returncode == 0:
        return
    shutil.rmtree(environment, ignore_errors=True)
    print(f"set-up: creating {environment.name} with Python {sys.version.split()[0]}")
    sharing = ["--system-site-packages"] if share_packages else []
    made = subprocess.run([sys.executable, "-m", "venv", *sharing, environment], capture_output=True, text=True)
    if made.returncode:
        shutil.rmtree(environment, ignore_errors=True)
        reason = (made.stdout + made.stderr).strip()
        raise SetUpError(f"python -m venv failed (on Debian and Ubuntu, install python3-venv first).\n{reason}")


def borrow_packages(environment: Path) -> None:
    """Make the interpreter's packages visible, even if the interpreter belongs to a virtual environment itself."""
    folders = [entry for entry in sys.path if Path(entry).name in {"site-packages", "dist-packages"}]
    (site_packages,) = environment.glob("lib/python3.*/site-packages")
    (site_packages / "inherited.pth").write_text("".join(f"{folder}\n" for folder in folders))


def installed_torch(environment: Path) -> str:
    """The version of torch in the environment, or an empty string."""
    asked = subprocess.run(
        [environment / "bin" / "python", "-c", FIND_TORCH], capture_output=True, text=True, check=True
    )
    return asked.stdout.strip()


def install_torch(environment: Path, requirement: str) -> None:
    """Install the requested torch, or the pinned one."""
    print(f"set-up: installing {requirement or 'the pinned torch'}")
    pip_install(
        environment, *([requirement] if requirement else ["--requirement", f"{ROOT / 'requirements-torch.txt'}"])
    )


def install_packages(environment: Path, extras: list[str]) -> None:
    """Install Pilotage, its drop-ins and what the extras name, with torch kept at the installed version."""
    version = installed_torch(environment)
    print(f"set-up: installing Pilotage next to torch {version}, with the extras {', '.join(extras) or 'none'}")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as constraints:
        constraints.write(f"torch=={version}\n" if version else "")
        constraints.flush()
        packages = ("--editable", f"{ROOT}[{','.join(extras)}]", "--editable", f"{ROOT / 'dropins'}")
        pip_install(environment, "--constraint", constraints.name, *packages)
    if installed_torch(environment) != version:
        raise SetUpError(f"torch changed from {version} to {installed_torch(environment)}; please report this.")


def pip_install(environment: Path, *arguments: str) -> None:
    """Install into the environment with its own pip."""
    pip = [str(environment / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check"]
    if subprocess.run([*pip, *arguments]).returncode:
        raise SetUpError("pip failed; its output is above.")


if __name__ == "__main__":
    sys.exit(main())
