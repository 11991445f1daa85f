"""The C++ part of the emulation: built once for each torch and kept in the user's cache.

Its owner, permissions and digest are checked before it is loaded.
"""

from __future__ import annotations

import ctypes
import hashlib
from functools import cache
from pathlib import Path

import torch
from torch.utils import cpp_extension

from habana_frameworks._emulation import computing_device
from habana_frameworks._emulation.building import CannotBuildError, run_compiler
from pilotage.engine import (
    OLD_EMULATION_FILES,
    Limits,
    PilotageError,
    ProgramFileError,
    SealedFolder,
    Store,
    Warned,
    environment,
    log_event,
    name_of,
    seal,
    tidy,
)

_SOURCES = Path(__file__).parent
_FILE = "emulation.so"
_FLAGS = ("-std=c++20", "-O2", "-fPIC", "-shared")


class Graph(ctypes.Structure):
    """One graph of lazy mode, as the library counts its operations."""

    _fields_ = (
        ("operations", ctypes.c_int64),
        ("structure", ctypes.c_uint64),
        ("shapes", ctypes.c_uint64),
        ("cut_by_reading", ctypes.c_int64),
    )


ReadCallback = ctypes.CFUNCTYPE(None)
"""Called by the library when reading a value has ended a graph."""


@cache
def library() -> ctypes.CDLL:
    """Load the library, which registers the device with torch; build it first if necessary."""
    computing_device.check()
    loaded = ctypes.CDLL(str(built_library()))
    for name in ("memory_allocated", "memory_peak", "take_graphs"):
        getattr(loaded, name).restype = ctypes.c_int64
    loaded.came_late.restype = ctypes.c_bool
    loaded.take_graphs.argtypes = (ctypes.POINTER(Graph), ctypes.c_int64)
    loaded.gather_graphs.argtypes = (ReadCallback,)
    return loaded


def built_library() -> Path:
    """The checked library in the user's cache, built if necessary; raises CannotBuildError if that fails."""
    try:
        return _kept(Limits.from_environment()).folder / _FILE
    except (OSError, PilotageError) as error:
        raise CannotBuildError(
            f"The emulated Gaudi device cannot be kept in {environment.emulation_cache()}: {error} Set "
            "PILOTAGE_CACHE_DIR (or XDG_CACHE_HOME) to a directory that you can write to and others cannot."
        ) from error


@cache
def _kept(limits: Limits) -> SealedFolder:
    """The checked library in the user's cache; it is not removed while this object exists."""
    store = Store(environment.emulation_cache(), leftovers=OLD_EMULATION_FILES)
    parts = _parts()
    name = name_of(parts)
    if (found := _found(store, name, parts)) is not None:
        return found
    # Of several processes that start together, one builds.
    with store.build_lock(name):
        if _found(store, name, parts) is None:
            with store.building(name) as folder:
                _build(folder / _FILE)
                seal(folder, {"parts": parts, "about": {"name": "emulated Gaudi card", "kind": "library"}})
            tidy(store, limits, keep=name)
        found = store.find(name, parts)
    if found is None:
        raise ProgramFileError(f"The library was built, but has disappeared from {store.root}.")
    return found


def _found(store: Store, name: str, parts: dict[str, str]) -> SealedFolder | None:
    try:
        return store.find(name, parts)
    except ProgramFileError as error:
        _warn(f"{error} It is built again.")
        return None


def _parts() -> dict[str, str]:
    """What the library depends on."""
    sources = hashlib.sha256()
    for source in sorted(_SOURCES.glob("*.[hc]*")):
        if source.suffix in (".h", ".cpp"):
            sources.update(source.read_bytes())
    return {
        "torch": torch.__version__,
        "torch's place": str(torch.__file__),
        "compiler": " ".join((environment.cpp_compiler(), *_FLAGS)),
        "sources": sources.hexdigest(),
    }


def _build(path: Path) -> None:
    run_compiler(environment.cpp_compiler(), lambda compiler: _command(compiler, path))


def _warn(message: str) -> None:
    log_event(Warned(message=message))


def _command(compiler: str, target: Path) -> list[str]:
    includes = [f"-I{folder}" for folder in cpp_extension.include_paths()]
    (libraries,) = {folder for folder in cpp_extension.library_paths() if Path(folder, "libc10.so").exists()}
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"
    source = str(_SOURCES / "emulation.cpp")
    links = [f"-L{libraries}", "-lc10", "-ltorch_cpu", f"-Wl,-rpath,{libraries}"]
    return [compiler, *_FLAGS, abi, *includes, source, "-o", str(target), *links]
