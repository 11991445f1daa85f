"""Packs compiled code into program files, and installs it from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

import torch
from torch import Tensor

from pilotage.cache.sealed import UnsealedError, make_private
from pilotage.compiler.cache import Entry, NativeCache, read_entry
from pilotage.errors import ProgramFileError
from pilotage.storage.fingerprint import Fingerprint


@dataclass(frozen=True, slots=True)
class PackedCode:
    """The files of one compiled program."""

    files: Mapping[str, bytes]

    @classmethod
    def of(cls, entry: Entry) -> PackedCode:
        """The files of a program in the cache."""
        return cls(entry.files())

    @classmethod
    def of_tensors(cls, tensors: Mapping[str, Tensor]) -> PackedCode | None:
        """The files stored as tensors; None if there are none."""
        return cls({name: tensor.numpy().tobytes() for name, tensor in tensors.items()}) if tensors else None

    def tensors(self) -> dict[str, Tensor]:
        """The files as byte tensors."""
        return {name: torch.frombuffer(bytearray(data), dtype=torch.uint8) for name, data in self.files.items() if data}

    def install(self, cache: NativeCache, fingerprint: Fingerprint) -> bool:
        """Install the code in the cache, if it was compiled for this program and machine."""
        if cache.folder(fingerprint).is_dir():
            return True
        with cache.building(fingerprint) as folder:
            for name, data in self.files.items():
                place = PurePosixPath(name)
                if place.is_absolute() or ".." in place.parts:
                    raise ProgramFileError(f"The compiled code in the file would be written to {name}. It is not used.")
                (folder / place).parent.mkdir(parents=True, exist_ok=True)
                (folder / place).write_bytes(data)
            make_private(folder)
            try:
                entry = read_entry(folder)
            except UnsealedError as error:
                raise _ForAnother from error
            if fingerprint.differences(entry.parts):
                raise _ForAnother
        return True


class _ForAnother(Exception):
    """The code was compiled for another program or machine."""


def install(code: PackedCode, cache: NativeCache, fingerprint: Fingerprint) -> bool:
    """Install code in the cache; returns whether it fits this program and machine."""
    try:
        return code.install(cache, fingerprint)
    except _ForAnother:
        return False
