"""A file that holds plain data and tensors, and nothing that runs when it is read.

It is a safetensors file, so that every tool that reads those can read the tensors. Its metadata hold our plain data as
JSON, with a SHA-256 of each tensor, and a SHA-256 of that JSON: a file that was cut short or altered is refused. Files
of format 1, zip archives, are still read.
"""

from __future__ import annotations

import hashlib
import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from pilotage.errors import ProgramFileError
from pilotage.storage import zip_archive
from pilotage.storage.dtypes import (
    BY_NAME,
    STORED_AS,
    as_stored,
    check_storable,
    from_stored,
    name_of,
    raw_bytes,
    stored_shape,
)
from pilotage.storage.json_text import from_text, to_text
from pilotage.storage.mapped_file import MappedFile, mapped_file
from pilotage.storage.tensor_file import Entry, header_bytes, is_shape, placed, read_header
from pilotage.whole_files import write_whole

FORMAT = 2

_DATA, _DIGEST = "pilotage", "pilotage_sha256"
_UNKNOWN = "0" * 64
"""Stands for a digest until the tensor has been written."""

_UNREADABLE = (
    OSError,
    EOFError,
    LookupError,
    AttributeError,
    TypeError,
    ValueError,
    ArithmeticError,
    RuntimeError,
    struct.error,
    zipfile.BadZipFile,
)
"""What reading a damaged file may end in."""


def write_archive(
    path: Path, content: Mapping[str, Any], tensors: Mapping[str, Tensor], *, durable: bool = True
) -> None:
    """Write a file that is never seen half-written, and is on the disk when this returns.

    One tensor at a time is brought to the host. ``durable=False`` does not wait for the disk.
    """
    for name, tensor in tensors.items():
        check_storable(name, tensor)
    kinds = {name: (tensor.dtype, tuple(tensor.shape)) for name, tensor in tensors.items()}
    entries = placed(
        {name: (STORED_AS.get(dtype, dtype), stored_shape(shape, dtype)) for name, (dtype, shape) in kinds.items()}
    )
    digests = dict.fromkeys(tensors, _UNKNOWN)

    def write(file: BinaryIO) -> None:
        file.write(_header(path, content, kinds, entries, digests))
        for name in entries:
            data = raw_bytes(as_stored(tensors[name]))
            digests[name] = hashlib.sha256(data).hexdigest()
            file.write(data)
        # Digests are all of one length, so that the header takes as much room as before.
        file.seek(0)
        file.write(_header(path, content, kinds, entries, digests))

    write_whole(path, write, mode=0o600, durable=durable)


def read_archive(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The content and the tensors of a file; raises if any byte of it has changed.

    The tensors lie on a private mapping of the file. Copy what is to outlive a change to the file itself; replacing it
    by another one does no harm.
    """
    with _opened(path) as file:
        if zip_archive.is_zip(file):
            return zip_archive.read_zip(path, file)
        return _read(path, file)


def read_content(path: Path) -> dict[str, Any]:
    """The content of a file; its tensors are neither read nor checked."""
    with _opened(path) as file:
        if zip_archive.is_zip(file):
            return zip_archive.read_zip_content(path, file)
        data, _, _ = _checked_data(path, file)
        content: dict[str, Any] = data["content"]
        return content


@contextmanager
def _opened(path: Path) -> Iterator[MappedFile]:
    try:
        with mapped_file(path) as file:
            yield file
    except (FileNotFoundError, ProgramFileError):
        raise
    except _UNREADABLE as error:
        raise ProgramFileError(f"{path} is no program of Pilotage, or is cut short: {error}.") from error


def _header(
    path: Path,
    content: Mapping[str, Any],
    kinds: Mapping[str, tuple[torch.dtype, tuple[int, ...]]],
    entries: Mapping[str, Entry],
    digests: Mapping[str, str],
) -> bytes:
    table = {name: [name_of(dtype), list(shape), digests[name]] for name, (dtype, shape) in kinds.items()}
    try:
        text = to_text({"format": FORMAT, "torch": torch.__version__, "content": content, "tensors": table})
        digest = hashlib.sha256(text.encode()).hexdigest()
        return header_bytes(entries, {"format": "pt", _DATA: text, _DIGEST: digest})
    except ValueError as error:
        raise ProgramFileError(f"{path} cannot be written: {error}.") from error


def _read(path: Path, file: MappedFile) -> tuple[dict[str, Any], dict[str, Tensor]]:
    data, entries, start = _checked_data(path, file)
    tensors = {}
    for name, (kind, shape, digest) in data["tensors"].items():
        entry, dtype = entries[name], BY_NAME[kind]
        if not is_shape(shape) or (entry.dtype, entry.shape) != (
            STORED_AS.get(dtype, dtype),
            stored_shape(tuple(shape), dtype),
        ):
            raise ProgramFileError(f"{path} is damaged: its tensor {name} is not of the type and shape it was written.")
        if file.digest(start + entry.start, entry.size) != digest:
            raise ProgramFileError(f"{path} is damaged: its tensor {name} is not what was written.")
        tensors[name] = from_stored(file.tensor(start + entry.start, entry.dtype, entry.shape), dtype)
    return data["content"], tensors


def _checked_data(path: Path, file: MappedFile) -> tuple[dict[str, Any], dict[str, Entry], int]:
    """Our own data, the tensors that are in the file, and where their bytes begin."""
    metadata, entries, start = read_header(file)
    text = metadata[_DATA].encode()
    if hashlib.sha256(text).hexdigest() != metadata[_DIGEST]:
        raise ProgramFileError(f"{path} is damaged: its plain data are not what was written.")
    data = from_text(text)
    if data["format"] != FORMAT:
        raise ProgramFileError(
            f"{path} has the format {data['format']}; this version reads 1 and {FORMAT}. Compile it again."
        )
    if not isinstance(data["content"], dict):
        raise ValueError("its content is not a dictionary")
    if set(data["tensors"]) != set(entries):
        raise ProgramFileError(f"{path} is damaged: it does not hold the tensors that were written.")
    return data, entries, start
