"""The versions of Python and of the packages that the engine needs."""

from __future__ import annotations

import importlib
import platform
import re
import sys
from types import ModuleType

import pilotage
from pilotage.cli.doctor.finding import Finding, Verdict
from pilotage.version import FIRST_UNTESTED_TORCH, OLDEST_TORCH, TORCH_RANGE

__all__ = ["TORCH_RANGE", "describe_build", "examine_numpy", "examine_pilotage", "examine_python", "examine_torch"]

INSTALL_TORCH = f"Install the vendor's build of torch if there is one, otherwise: pip install '{TORCH_RANGE}'"


def examine_python() -> Finding:
    """Report the interpreter."""
    version = platform.python_version()
    return Finding(
        name="Python",
        value=f"{version} at {sys.executable}",
        facts={"version": version, "executable": sys.executable, "platform": platform.platform()},
    )


def examine_pilotage() -> Finding:
    """Report the version of Pilotage and its folder."""
    folder, version = pilotage.__path__[0], pilotage.__version__
    return Finding(name="pilotage", value=f"{version} at {folder}", facts={"version": version, "folder": folder})


def examine_numpy() -> Finding:
    """Check that numpy can be imported."""
    numpy, reason = _import("numpy")
    if numpy is None:
        return _failed("numpy", reason, "pip install 'numpy>=1.26'")
    return Finding(name="numpy", value=numpy.__version__, facts={"version": numpy.__version__})


def examine_torch() -> tuple[Finding, ModuleType | None]:
    """Import torch and report its build and whether the version is supported; torch may be missing or broken."""
    torch, reason = _import("torch")
    if torch is None:
        return _failed("torch", reason, INSTALL_TORCH), None
    version = str(torch.__version__)
    build = describe_build(version, torch.version.cuda, getattr(torch.version, "hip", None))
    fits = fits_range(version)
    facts = {"version": version, "build": build, "range": TORCH_RANGE, "fits": fits, "folder": torch.__path__[0]}
    value = f"{version}, {build}; {'fits' if fits else 'outside'} {TORCH_RANGE}"
    if fits:
        return Finding(name="torch", value=value, facts=facts), torch
    remedy = (
        f"Pilotage is tested with {TORCH_RANGE} and never replaces torch itself. Install such a version if you can."
    )
    return Finding(name="torch", value=value, verdict=Verdict.WARNING, remedy=remedy, facts=facts), torch


def fits_range(version: str) -> bool:
    """Whether Pilotage is tested with this version."""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return numbers is not None and OLDEST_TORCH <= tuple(map(int, numbers.groups())) < FIRST_UNTESTED_TORCH


def describe_build(version: str, cuda: str | None, hip: str | None) -> str:
    """Describe a build of torch by its CUDA or ROCm version, or its local version tag."""
    _, _, tag = version.partition("+")
    if hip:
        return f"ROCm {hip} build"
    if cuda:
        return f"CUDA {cuda} build"
    if tag in ("", "cpu"):
        return "CPU build"
    return f"vendor's build {tag!r}"


def _import(name: str) -> tuple[ModuleType | None, str]:
    # A broken installation can fail in many ways, such as a missing library or a plug-in that torch loads.
    try:
        return importlib.import_module(name), ""
    except ModuleNotFoundError as error:
        return None, "not installed" if error.name == name else f"does not import: {error}"
    except Exception as error:
        return None, f"does not import: {type(error).__name__}: {error}".splitlines()[0]


def _failed(name: str, reason: str, remedy: str) -> Finding:
    return Finding(name=name, value=reason, verdict=Verdict.PROBLEM, remedy=remedy, facts={"version": None})
