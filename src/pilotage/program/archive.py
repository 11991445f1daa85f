"""A file that holds plain data and tensors, and nothing that runs when it is read.

It is a zip archive: ``content.json``, one entry of raw bytes for each tensor, and ``digest.json`` with a SHA-256 of
each of them, so that a file that was cut short or altered is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pilotage.errors import ProgramFileError

FORMAT = 1

_UNREADABLE = (OSError, EOFError, KeyError, ValueError, RuntimeError, struct.error, zlib.error, zipfile.BadZipFile)
"""What reading a damaged zip archive may end in."""


def write_archive(path: Path, content: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Write a file under another name and then give it its own, so that it is never seen half-written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    entries = {f"tensors/{number}": _bytes(tensor) for number, tensor in enumerate(tensors.values())}
    table = {
        name: [f"tensors/{number}", list(tensor.shape), str(tensor.dtype).removeprefix("torch.")]
        for number, (name, tensor) in enumerate(tensors.items())
    }
    whole = {"format": FORMAT, "torch": torch.__version__, "content": content, "tensors": table}
    entries["content.json"] = json.dumps(whole).encode()
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in entries.items()}
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name, data in entries.items():
                archive.writestr(name, data)
            archive.writestr("digest.json", json.dumps(digests))
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_archive(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The content and the tensors of a file; raises if any byte of it has changed."""
    try:
        with zipfile.ZipFile(path) as archive:
            digests = json.loads(archive.read("digest.json"))
            entries = {name: archive.read(name) for name in digests}
        whole = json.loads(entries["content.json"])
    except FileNotFoundError:
        raise
    except _UNREADABLE as error:
        raise ProgramFileError(f"{path} is no program of Pilotage, or is cut short: {error}") from error
    for name, data in entries.items():
        if hashlib.sha256(data).hexdigest() != digests[name]:
            raise ProgramFileError(f"{path} is damaged: its part {name} is not what was written.")
    if whole["format"] != FORMAT:
        raise ProgramFileError(
            f"{path} has the format {whole['format']}; this version reads {FORMAT}. Compile it again."
        )
    tensors = {name: _tensor(entries[entry], shape, dtype) for name, (entry, shape, dtype) in whole["tensors"].items()}
    return whole["content"], tensors


def _bytes(tensor: Tensor) -> bytes:
    plain = tensor.detach().to("cpu").contiguous()
    return plain.reshape(-1).view(torch.uint8).numpy().tobytes() if plain.numel() else b""


def _tensor(data: bytes, shape: list[int], dtype: str) -> Tensor:
    kind: torch.dtype = getattr(torch, dtype)
    if not data:
        return torch.empty(shape, dtype=kind)
    return torch.frombuffer(bytearray(data), dtype=kind).reshape(shape)
