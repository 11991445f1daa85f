"""Writes ported files: to a new place, or over the originals, all of them or none."""

from __future__ import annotations

import io
import os
import secrets
import tokenize
from collections.abc import Sequence
from pathlib import Path

from pilotage.errors import PortingError
from pilotage.porting.report import PortedFile, Report
from pilotage.whole_files import UNFINISHED, sync_folder, write_whole

__all__ = ["Writing"]


class Writing:
    """Where each file of a report goes."""

    def __init__(self, report: Report, *, output: Path | None = None, in_place: bool = False) -> None:
        self._in_place = in_place
        files = [each for each in report.files if each.is_changed or output is not None]
        self._files: Sequence[tuple[PortedFile, Path]] = ()
        if output is not None:
            self._files = [(each, _target(each.path, report.files, output)) for each in files]
        elif in_place:
            self._files = [(each, each.path.resolve()) for each in files]

    def check(self) -> None:
        """Raise before anything is written if a file could not be."""
        for _, target in self._files:
            if not self._in_place and target.exists():
                raise PortingError(f"{target} exists already. Choose another place, or replace files with --in-place.")
            if self._in_place and not os.access(target, os.W_OK):
                raise PortingError(f"{target} cannot be written: permission denied.")
            folder = next(each for each in (target.parent, *target.parents) if each.exists())
            if not folder.is_dir():
                raise PortingError(f"{target} cannot be written: {folder} is not a folder.")
            if not os.access(folder, os.W_OK):
                raise PortingError(f"{target} cannot be written: permission denied in {folder}.")

    def write(self) -> list[Path]:
        """Write all files, each complete; returns their paths. If one cannot be written, none is replaced."""
        waiting: dict[Path, Path] = {}
        target: Path | None = None
        try:
            for file, target in self._files:
                waiting[target] = target.with_name(f".{target.name}.{secrets.token_hex(8)}{UNFINISHED}")
                write_whole(waiting[target], file.after.encode(_encoding(file.path)))
                waiting[target].chmod(file.path.stat().st_mode & 0o777)
            for target, written in waiting.items():
                os.replace(written, target)
        except OSError as error:
            raise PortingError(f"{target} cannot be written: {error.strerror or error}.") from None
        finally:
            for written in waiting.values():
                written.unlink(missing_ok=True)
        for folder in {target.parent for target in waiting}:
            sync_folder(folder)
        return list(waiting)


def _target(path: Path, files: Sequence[PortedFile], output: Path) -> Path:
    """The new path of a file: the output itself for one file, a path inside of it for several."""
    if len(files) == 1 and not output.is_dir():
        return output
    root = Path(os.path.commonpath([each.path.resolve().parent for each in files]))
    return output / path.resolve().relative_to(root)


def _encoding(path: Path) -> str:
    """The encoding of the original, which its first lines may name."""
    try:
        with path.open("rb") as stream:
            return tokenize.detect_encoding(io.BytesIO(stream.read(4096)).readline)[0]
    except (OSError, SyntaxError):
        return "utf-8"
