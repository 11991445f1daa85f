"""An audit hook that records everything a file must not make a process do."""

from __future__ import annotations

import dis
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

GENERATED = ("<pilotage graph", "<eval_with_key>")
"""File names of source generated from graphs."""

FORBIDDEN = (
    "ctypes.dlopen",
    "os.chmod",
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.kill",
    "os.link",
    "os.mkdir",
    "os.posix_spawn",
    "os.putenv",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.spawn",
    "os.symlink",
    "os.system",
    "os.truncate",
    "pickle.find_class",
    "shutil",
    "socket",
    "subprocess",
    "tempfile",
    "urllib",
)
PAYLOAD = {"__import__", "pathlib", "Path", "touch", "exec", "eval", "open"}
"""Names that `payloads` use and graphs do not."""

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Watch:
    """Records events after its installation; an audit hook stays until the process ends."""

    def __init__(self, own: Path) -> None:
        self.violations: list[str] = []
        libraries = {os.path.dirname(os.__file__), sys.prefix, sys.base_prefix, *filter(None, sys.path)}
        self._readable = (str(own), *map(os.path.realpath, libraries), *libraries, "/proc", "/sys", "/dev", "/etc")
        self._is_on = True

    def install(self) -> None:
        """Start recording."""
        sys.addaudithook(self._hook)

    def stop(self) -> None:
        """Stop recording."""
        self._is_on = False

    def _hook(self, event: str, arguments: tuple) -> None:
        if self._is_on and len(self.violations) < 20:
            found = self._violation(event, arguments)
            if found:
                self.violations.append(found[:300])

    def _violation(self, event: str, arguments: tuple) -> str:
        if event == "open":
            return self._opening(*arguments)
        if event == "exec":
            return "" if self._is_known(arguments[0]) else f"executes {arguments[0]} with {arguments[0].co_names}"
        if event.startswith(FORBIDDEN):
            return f"{event} {arguments}"
        return ""

    def _is_known(self, code: CodeType) -> bool:
        """Whether code was generated from a graph, belongs to a library, or calls nothing, like named tuples."""
        if code.co_filename.startswith(GENERATED):
            return not PAYLOAD & set(_names(code))
        if code.co_filename.startswith(self._readable):
            return True
        return code.co_filename == "<string>" and not any(
            each.opname.startswith(("CALL", "IMPORT")) for each in dis.get_instructions(code)
        )

    def _opening(self, path: object, mode: str | None, flags: int) -> str:
        name = os.fspath(path) if isinstance(path, (str, bytes, os.PathLike)) else str(path)
        name = os.fsdecode(name)
        if name.isdigit() or name == os.devnull:
            return ""
        if (mode and set(mode) & set("wax+")) or (flags or 0) & _WRITES:
            return f"opens {name} for writing"
        return "" if os.path.abspath(name).startswith(self._readable) else f"reads {name}"


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
