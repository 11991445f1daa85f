"""Compilers that the tier `compiled` needs; the tier `graph` needs none."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from importlib import metadata
from pathlib import Path

from pilotage.cli.doctor.finding import Finding, Verdict

__all__ = ["examine_compiler", "examine_headers", "examine_triton"]


def examine_compiler(wanted: str) -> Finding:
    """Look for the C++ compiler that torch's Inductor would call."""
    path = shutil.which(wanted)
    if path is None:
        remedy = "Programs run on the tier `graph`. Install g++ (or name a compiler in CXX) for the tier `compiled`."
        facts = {"path": None, "version": None}
        value = f"no {wanted} found"
        return Finding(name="C++", value=value, verdict=Verdict.WARNING, remedy=remedy, facts=facts)
    answer = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    version = (answer.stdout or answer.stderr).strip().partition("\n")[0]
    if answer.returncode:
        remedy = f"{path} --version failed. Mend or reinstall it for the tier `compiled`."
        return Finding(name="C++", value=version, verdict=Verdict.WARNING, remedy=remedy, facts={"path": path})
    return Finding(name="C++", value=f"{version} at {path}", facts={"path": path, "version": version})


def examine_headers(folder: str | None = None) -> Finding:
    """Look for the Python headers, which Inductor's kernels on the CPU include."""
    header = Path(folder or sysconfig.get_path("include")) / "Python.h"
    facts = {"path": str(header), "present": header.is_file()}
    if header.is_file():
        return Finding(name="Python headers", value=str(header.parent), facts=facts)
    remedy = "Programs run on the tier `graph`. Install the headers (Debian: python3-dev) for the tier `compiled`."
    value = f"no {header}"
    return Finding(name="Python headers", value=value, verdict=Verdict.WARNING, remedy=remedy, facts=facts)


def examine_triton(*, needed: bool) -> Finding:
    """Look for triton, which Inductor needs on CUDA alone."""
    version = next((found.version for found in metadata.distributions(name="triton")), None)
    if version is not None:
        return Finding(name="triton", value=version, facts={"version": version})
    if not needed:
        return Finding(
            name="triton", value="none; needed on CUDA alone", verdict=Verdict.ABSENT, facts={"version": None}
        )
    remedy = "Programs run on the tier `graph`. Install the triton that belongs to this torch for the tier `compiled`."
    return Finding(name="triton", value="none", verdict=Verdict.WARNING, remedy=remedy, facts={"version": None})
