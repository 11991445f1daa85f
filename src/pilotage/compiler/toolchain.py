"""Facts about the C++ compiler, kept for later compilations; used only in the compiling process.

Inductor compiles torch's headers ahead of the first kernel, and a small program for each vector instruction set of the
processor, to see which of them work. Both take seconds. Inductor keeps headers in a folder of ``/tmp``, which another
user could have made; here everything is in the user's own cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from pilotage.cache.private_files import private_directory
from pilotage.errors import OptionError
from pilotage.options import environment

_FOLDER = "toolchain"


@contextmanager
def known_toolchain(scratch: Path) -> Iterator[None]:
    """Use what earlier compilations have found out, and keep what this one finds out.

    ``scratch`` is for files that cannot be kept because the user has no private cache.
    """
    from pilotage.torch_private import HEADER_DIRECTORIES, inductor_codecache, inductor_config

    try:
        folder = private_directory(environment.cache_directory() / _FOLDER)
    except OptionError:
        folder = scratch
    for name, place in zip(HEADER_DIRECTORIES, ("headers", "headers/locks"), strict=True):
        setattr(inductor_codecache, name, str(folder / place))
    mark = folder / f"instructions-{_machine()}"
    if inductor_config.cpp.vec_isa_ok is not None:
        # The user has decided.
        yield
        return
    if mark.is_file():
        inductor_config.cpp.vec_isa_ok = True
        yield
        return
    yield
    if _all_instructions_work():
        with contextlib.suppress(OSError):
            mark.touch()


def _all_instructions_work() -> bool:
    """Whether the compiler supports every vector instruction set of the processor that Inductor knows."""
    from pilotage.torch_private import cpu_vec_isa

    present = cpu_vec_isa.x86_isa_checker()
    tried = [each for each in cpu_vec_isa.supported_vec_isa_list if all(flag in present for flag in str(each).split())]
    return bool(tried) and all(tried)


def _machine() -> str:
    """A digest of all that decides which instructions work."""
    compiler = environment.cpp_compiler()
    program = shutil.which(compiler)
    facts = Path(program).resolve().stat() if program is not None else None
    version = (compiler, program, facts and (facts.st_size, facts.st_mtime_ns))
    capabilities = torch.backends.cpu.get_cpu_capability(), sorted(torch.cpu.get_capabilities().items())
    return hashlib.sha256(repr((torch.__version__, version, capabilities)).encode()).hexdigest()[:16]
