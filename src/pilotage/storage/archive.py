"""Files with plain data and tensors; reading one runs no code from it.

They are safetensors files, so other tools can read the tensors. The metadata contains our plain data as JSON, with a
SHA-256 of each tensor, and a SHA-256 of that JSON: a truncated or modified file is refused. Files of format 1, zip
archives, can still be read.
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
    dtype_name,
    from_stored,
    raw_bytes,
    stored_shape,
)
from pilotage.storage.json_text import from_text, to_text
from pilotage.storage.mapped_file import MappedFile, mapped_file
from pilotage.storage.tensor_file import TensorEntry, header_bytes, is_shape, place_tensors, read_header
from pilotage.whole_files import write_whole

FORMAT = 2

_DATA, _DIGEST = "pilotage", "pilotage_sha256"
_UNKNOWN = "0" * 64
"""A placeholder for a digest until the tensor has been written."""

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
"""Errors that reading a damaged file can raise."""


def write_archive(
    path: Path, content: Mapping[str, Any], tensors: Mapping[str, Tensor], *, durable: bool = True
) -> None:
    """Write a file atomically; it is on disk when this returns.

    Tensors are copied to the host one at a time. ``durable=False`` does not wait for the disk.
    """
    for name, tensor in tensors.items():
        check_storable(name, tensor)
    kinds = {name: (tensor.dtype, tuple(tensor.shape)) for name, tensor in tensors.items()}
    entries = place_tensors(
        {name: (STORED_AS.get(dtype, dtype), stored_shape(shape, dtype)) for name, (dtype, shape) in kinds.items()}
    )
    digests = dict.fromkeys(tensors, _UNKNOWN)

    def write(file: BinaryIO) -> None:
        file.write(_header(path, content, kinds, entries, digests))
        for name in entries:
            data = raw_bytes(as_stored(tensors[name]))
            digests[name] = hashlib.sha256(data).hexdigest()
            file.write(data)
        # All digests have the same length, so the header has the same size as before.
        file.seek(0)
        file.write(_header(path, content, kinds, entries, digests))

    write_whole(path, write, mode=0o600, durable=durable)


def read_archive(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The content and the tensors of a file; raises if any byte of it has changed.

    The tensors are a private memory mapping of the file. Copy them if the file may be modified in place; replacing it
    by another file is safe.
    """
    with _opened(path) as file:
        if zip_archive.is_zip(file):
            return zip_archive.read_zip(path, file)
        return _read(path, file)


def read_content(path: Path) -> dict[str, Any]:
    """The content of a file, without reading or checking its tensors."""
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
        raise ProgramFileError(f"{path} is not a program of Pilotage, or is truncated: {error}.") from error


def _header(
    path: Path,
    content: Mapping[str, Any],
    kinds: Mapping[str, tuple[torch.dtype, tuple[int, ...]]],
    entries: Mapping[str, TensorEntry],
    digests: Mapping[str, str],
) -> bytes:
    table = {name: [dtype_name(dtype), list(shape), digests[name]] for name, (dtype, shape) in kinds.items()}
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
            raise ProgramFileError(f"{path} is damaged: its tensor {name} does not have its original type and shape.")
        if file.digest(start + entry.start, entry.size) != digest:
            raise ProgramFileError(f"{path} is damaged: its tensor {name} has changed.")
        tensors[name] = from_stored(file.tensor(start + entry.start, entry.dtype, entry.shape), dtype)
    return data["content"], tensors


def _checked_data(path: Path, file: MappedFile) -> tuple[dict[str, Any], dict[str, TensorEntry], int]:
    """Our own data, the tensors in the file, and the offset of their bytes."""
    metadata, entries, start = read_header(file)
    text = metadata[_DATA].encode()
    if hashlib.sha256(text).hexdigest() != metadata[_DIGEST]:
        raise ProgramFileError(f"{path} is damaged: its plain data has changed.")
    data = from_text(text)
    if data["format"] != FORMAT:
        raise ProgramFileError(
            f"{path} has the format {data['format']}; this version reads 1 and {FORMAT}. Compile it again."
        )
    if not isinstance(data["content"], dict):
        raise ValueError("its content is not a dictionary")
    if set(data["tensors"]) != set(entries):
        raise ProgramFileError(f"{path} is damaged: its tensors are not those that were written.")
    return data, entries, start
