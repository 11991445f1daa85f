"""Compilers that torch.compile calls; Pilotage's own programs need none."""

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
        remedy = "Programs run without it. For torch.compile, install g++ or name a compiler in CXX."
        return _absent("C++", f"no {wanted} found", remedy)
    answer = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    version = (answer.stdout or answer.stderr).strip().partition("\n")[0]
    if answer.returncode:
        remedy = f"{path} --version failed. Programs run without it; fix it for torch.compile."
        return Finding(name="C++", value=version, verdict=Verdict.WARNING, remedy=remedy, facts={"path": path})
    return Finding(name="C++", value=f"{version} at {path}", facts={"path": path, "version": version})


def examine_headers(folder: str | None = None) -> Finding:
    """Look for the Python headers, which Inductor's kernels on the CPU include."""
    header = Path(folder or sysconfig.get_path("include")) / "Python.h"
    if header.is_file():
        return Finding(name="Python headers", value=str(header.parent), facts={"path": str(header)})
    remedy = "Programs run without them. For torch.compile, install them (Debian: python3-dev)."
    return _absent("Python headers", f"no {header}", remedy)


def examine_triton() -> Finding:
    """Look for triton, which Inductor needs on CUDA."""
    version = next((found.version for found in metadata.distributions(name="triton")), None)
    if version is None:
        return _absent("triton", "none; torch.compile needs it only on CUDA")
    return Finding(name="triton", value=version, facts={"version": version})


def _absent(name: str, value: str, remedy: str | None = None) -> Finding:
    return Finding(name=name, value=value, verdict=Verdict.ABSENT, remedy=remedy, facts={"path": None, "version": None})
