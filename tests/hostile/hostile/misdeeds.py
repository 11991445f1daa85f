"""Does what a file must not be able to do, to check that the sandbox detects it."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path


def do(path: Path) -> str:
    """Do what the name of the file says."""
    match path.name:
        case "write":
            Path("MARKER").write_text("here")
        case "execute":
            exec("x = print()")
        case "start":
            subprocess.run(["true"], check=False)
        case "hang":
            while True:
                pass
        case "crash":
            ctypes.string_at(0)
        case "grow":
            return str(len(bytearray(b"x") * (512 << 20)))
    return "done"
