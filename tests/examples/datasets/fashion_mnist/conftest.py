from __future__ import annotations

import gzip
import hashlib
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from examples.datasets.fashion_mnist.files import DataFile
from pilotage.errors import DatasetError


@dataclass(frozen=True)
class Miniature:
    """A few small files of the real format, with their digests."""

    files: list[DataFile]
    contents: dict[str, bytes]

    def write_to(self, directory: Path, *, compressed: bool = True) -> Path:
        directory.mkdir(parents=True, exist_ok=True)
        for name, content in self.contents.items():
            if compressed:
                (directory / f"{name}.gz").write_bytes(gzip.compress(content))
            else:
                (directory / name).write_bytes(content)
        return directory


@pytest.fixture
def miniature() -> Miniature:
    random = np.random.default_rng(0)
    files, contents = [], {}
    for name, shape in {"images": (5, 4, 4), "labels": (5,)}.items():
        values = random.integers(0, 256, shape, dtype=np.uint8)
        content = struct.pack(f">HBB{len(shape)}I", 0, 8, len(shape), *shape) + values.tobytes()
        files.append(DataFile(name=name, shape=shape, sha256=hashlib.sha256(content).hexdigest()))
        contents[name] = content
    return Miniature(files, contents)


@pytest.fixture(scope="session")
def real_directory() -> Path:
    """A directory with the real data on this machine; tests download nothing."""
    from examples.datasets.fashion_mnist.files import FILES
    from examples.datasets.fashion_mnist.loading import gather, standard_sources
    from examples.datasets.fashion_mnist.sources import Directory

    for source in standard_sources():
        if isinstance(source, Directory):
            try:
                gather(FILES, [source], lambda line: None)
            except DatasetError:
                continue
            return source.path
    pytest.skip("Fashion-MNIST is not on this machine; `make run` fetches it.")
