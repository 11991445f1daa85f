"""Reads files of format 1: zip archives of ``content.json``, raw bytes for each tensor, and ``digest.json``.

They were never compressed, so an archive whose parts are larger than the file was not written by us.
"""

from __future__ import annotations

import os
import struct
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pilotage.errors import ProgramFileError
from pilotage.storage.dtypes import BY_NAME, checked_values
from pilotage.storage.json_text import MAXIMUM_TEXT, from_text
from pilotage.storage.mapped_file import MappedFile
from pilotage.storage.tensor_file import is_shape

FORMAT = 1

_SIGNATURE = b"PK\x03\x04"
_LOCAL = struct.Struct("<4s22xHH")
"""The local header of a part: its signature, and the lengths of its name and extra field."""

_MAXIMUM_DIRECTORY = 16 * 2**20
"""The size of the list of parts, which zipfile reads at once."""


def is_zip(file: MappedFile) -> bool:
    """Whether a file starts like an archive of format 1."""
    return file.size >= len(_SIGNATURE) and file.read(0, len(_SIGNATURE)) == _SIGNATURE


def read_zip(path: Path, file: MappedFile) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The content and the tensors; raises if any byte has changed."""
    parts = _parts(file)
    whole, digests = _checked_content(path, file, parts)
    for name, digest in digests.items():
        if file.digest(*parts[name]) != digest:
            raise _damaged(path, name)
    return whole["content"], {name: _tensor(file, parts, *entry) for name, entry in whole["tensors"].items()}


def read_zip_content(path: Path, file: MappedFile) -> dict[str, Any]:
    """The content, without reading or checking tensors."""
    content: dict[str, Any] = _checked_content(path, file, _parts(file))[0]["content"]
    return content


def _checked_content(
    path: Path, file: MappedFile, parts: dict[str, tuple[int, int]]
) -> tuple[dict[str, Any], dict[str, str]]:
    digests: dict[str, str] = from_text(_text(file, parts["digest.json"]))
    if file.digest(*parts["content.json"]) != digests["content.json"]:
        raise _damaged(path, "content.json")
    whole: dict[str, Any] = from_text(_text(file, parts["content.json"]))
    if whole["format"] != FORMAT:
        raise ProgramFileError(f"{path} has the format {whole['format']} in an archive of format 1. Compile it again.")
    used = {entry for entry, *_ in whole["tensors"].values()}
    if not isinstance(whole["content"], dict) or not used <= set(digests):
        raise ValueError("its content is not that of an archive of format 1")
    return whole, digests


def _damaged(path: Path, part: str) -> ProgramFileError:
    return ProgramFileError(f"{path} is damaged: its part {part} has changed.")


def _parts(file: MappedFile) -> dict[str, tuple[int, int]]:
    """The offset and size of each part."""
    with zipfile.ZipFile(_Reader(file)) as archive:
        found = archive.infolist()
    sizes = sum(each.file_size for each in found)
    if any(each.compress_type != zipfile.ZIP_STORED or each.file_size != each.compress_size for each in found):
        raise ValueError("it is compressed, but files of Pilotage never are")
    if sizes > file.size:
        raise ValueError(f"its parts should have {sizes:,} bytes in total, but it has {file.size:,}")
    return {each.filename: (_start(file, each), each.file_size) for each in found}


def _start(file: MappedFile, part: zipfile.ZipInfo) -> int:
    signature, name, extra = _LOCAL.unpack(file.read(part.header_offset, _LOCAL.size))
    start: int = part.header_offset + _LOCAL.size + name + extra
    if signature != _SIGNATURE or start + part.file_size > file.size:
        raise ValueError(f"its part {part.filename[:100]} is not where it should be")
    return start


def _text(file: MappedFile, part: tuple[int, int]) -> bytes:
    start, size = part
    if size > MAXIMUM_TEXT:
        raise ValueError(f"its plain data has {size:,} bytes; at most {MAXIMUM_TEXT:,} are allowed")
    return file.read(start, size)


def _tensor(file: MappedFile, parts: dict[str, tuple[int, int]], entry: str, shape: list[int], dtype: str) -> Tensor:
    start, size = parts[entry]
    kind = BY_NAME[dtype]
    if not is_shape(shape) or torch.Size(shape).numel() * kind.itemsize != size:
        raise ValueError(f"its tensor {entry[:100]} has {size:,} bytes, which does not match its shape")
    return checked_values(file.tensor(start, kind, tuple(shape)))


class _Reader:
    """A mapped file as a file object for zipfile."""

    def __init__(self, file: MappedFile) -> None:
        self._file, self._place = file, 0

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._file.size}[whence]
        if base + offset < 0:
            raise OSError("it seeks before its start")
        self._place = base + offset
        return self._place

    def tell(self) -> int:
        return self._place

    def read(self, count: int = -1) -> bytes:
        left = max(self._file.size - self._place, 0)
        wanted = left if count < 0 else min(count, left)
        if wanted > _MAXIMUM_DIRECTORY:
            raise ValueError(f"its list of parts has {wanted:,} bytes; at most {_MAXIMUM_DIRECTORY:,} are allowed")
        data = self._file.read(self._place, wanted)
        self._place += len(data)
        return data
