"""The part of the emulation that torch can only be told in C++: built once for each torch, kept in the user's cache."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import torch
from torch.utils import cpp_extension

from habana_frameworks._emulation import underneath
from pilotage.backends.native.directory import private_directory
from pilotage.events import Warned
from pilotage.logs import log_event
from pilotage.options.environment import cache_directory

_SOURCES = Path(__file__).parent
_FLAGS = ("-std=c++20", "-O2", "-fPIC", "-shared")


class Graph(ctypes.Structure):
    """Operations between two cuts, as the library counts them."""

    _fields_ = (
        ("operations", ctypes.c_int64),
        ("structure", ctypes.c_uint64),
        ("shapes", ctypes.c_uint64),
        ("cut_by_reading", ctypes.c_int64),
    )


TellOfReading = ctypes.CFUNCTYPE(None)
"""What the library calls when reading a value has ended a graph."""


@cache
def library() -> ctypes.CDLL:
    """Load the library, which registers the device with torch; build it first where it is not there yet."""
    underneath.check()
    path = _place()
    if not path.exists():
        _build(path)
    loaded = ctypes.CDLL(str(path))
    for name in ("memory_allocated", "memory_peak", "take_graphs"):
        getattr(loaded, name).restype = ctypes.c_int64
    loaded.came_late.restype = ctypes.c_bool
    loaded.take_graphs.argtypes = (ctypes.POINTER(Graph), ctypes.c_int64)
    loaded.gather_graphs.argtypes = (TellOfReading,)
    return loaded


def _place() -> Path:
    content = hashlib.sha256(repr((torch.__version__, torch.__file__, _FLAGS, _compiler())).encode())
    for source in sorted(_SOURCES.glob("*.[hc]*")):
        if source.suffix in (".h", ".cpp"):
            content.update(source.read_bytes())
    return private_directory(cache_directory() / "gaudi") / f"emulation-{content.hexdigest()[:24]}.so"


def _compiler() -> str:
    return os.environ.get("CXX", "g++")


def _build(path: Path) -> None:
    compiler = shutil.which(_compiler())
    if compiler is None:
        raise ImportError(
            f"The emulated Gaudi device is built with a C++ compiler on first use, and there is no {_compiler()!r} here. "
            "Install g++ (12 or newer), or name a compiler in CXX."
        )
    log_event(
        Warned(message=f"Building the emulated Gaudi device with {compiler}: once for this torch, half a minute.")
    )
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder, path.name)
        built = subprocess.run(_command(compiler, made), capture_output=True, text=True)
        if built.returncode != 0:
            raise ImportError(f"{compiler} could not build the emulated Gaudi device:\n{built.stderr[-4000:]}")
        # Two processes may build at once; each puts a whole file in place.
        made.replace(path)


def _command(compiler: str, target: Path) -> list[str]:
    includes = [f"-I{folder}" for folder in cpp_extension.include_paths()]
    (libraries,) = {folder for folder in cpp_extension.library_paths() if Path(folder, "libc10.so").exists()}
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"
    source = str(_SOURCES / "emulation.cpp")
    links = [f"-L{libraries}", "-lc10", "-ltorch_cpu", f"-Wl,-rpath,{libraries}"]
    return [compiler, *_FLAGS, abi, *includes, source, "-o", str(target), *links]
