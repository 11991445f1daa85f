"""Finds the data set in one source after another, and generates a substitute if all of them fail."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from examples.datasets.fashion_mnist.arrays import LabelledImages, Splits
from examples.datasets.fashion_mnist.content import array_of
from examples.datasets.fashion_mnist.files import (
    FILES,
    TEST_IMAGES,
    TEST_LABELS,
    TRAIN_IMAGES,
    TRAIN_LABELS,
    DataFile,
)
from examples.datasets.fashion_mnist.generator import generate
from examples.datasets.fashion_mnist.sources import (
    DEBIAN_DIRECTORY,
    DEBIAN_PACKAGE,
    DebianPackage,
    Directory,
    Source,
    Website,
)
from pilotage.errors import DatasetError, OptionError
from pilotage.options.environment import cache_directory

GENERATED = "generated"
"""Selects generated data by name."""

Say = Callable[[str], None]


def say_on_stderr(line: str) -> None:
    """Print a message on standard error; standard output is for results."""
    print(line, file=sys.stderr, flush=True)


def load(
    data: str | Path | None = None,
    *,
    limit: int | None = None,
    sources: Sequence[Source] | None = None,
    say: Say = say_on_stderr,
) -> Splits:
    """Fashion-MNIST, from ``data`` or from the first source that has it.

    ``data`` is a directory to search first, or the word ``generated``; ``limit`` is the largest number of images in
    each split; ``sources`` replace the standard ones. With a directory, the result is the real data or a DatasetError;
    without one, it may be generated garments, with a warning.
    """
    if limit is not None and limit < 1:
        raise OptionError(f"limit is {limit}. It must be at least 1, or None for all.")
    if data == GENERATED:
        return generate(train=limit_of(TRAIN_LABELS, limit), test=limit_of(TEST_LABELS, limit))
    given = [] if data is None else [_checked(Path(data).expanduser())]
    try:
        contents, origin = gather(FILES, [*given, *(standard_sources() if sources is None else sources)], say)
    except DatasetError:
        if given:
            raise
        say(boxed(_STAND_IN))
        return generate(train=limit_of(TRAIN_LABELS, limit), test=limit_of(TEST_LABELS, limit))
    arrays = {file: array_of(contents[file.name], file) for file in FILES}
    return Splits(
        train=LabelledImages(arrays[TRAIN_IMAGES], arrays[TRAIN_LABELS]).first(limit),
        test=LabelledImages(arrays[TEST_IMAGES], arrays[TEST_LABELS]).first(limit),
        origin=origin,
    )


def standard_sources() -> list[Source]:
    """The sources in the order in which they are tried."""
    chosen = os.environ.get("PILOTAGE_DATA")
    cache = cache_directory() / "fashion-mnist"
    return [
        *([Directory(Path(chosen).expanduser())] if chosen else []),
        Directory(cache, remedy="Downloading it again."),
        Directory(DEBIAN_DIRECTORY),
        Website(cache),
        DebianPackage(cache),
    ]


def gather(files: Sequence[DataFile], sources: Sequence[Source], say: Say) -> tuple[dict[str, bytes], str]:
    """The verified content of every file, by name, and its sources."""
    contents: dict[str, bytes] = {}
    givers: list[str] = []
    complained = False
    for source in sources:
        wanted = [file for file in files if file.name not in contents]
        if not wanted:
            break
        found = source.fetch(wanted)
        for complaint in found.complaints:
            say(f"Fashion-MNIST: {complaint}")
        complained = complained or bool(found.complaints)
        if found.contents:
            contents |= found.contents
            givers.append(source.name)
            if complained:
                say(f"Fashion-MNIST: {len(found.contents)} of {len(files)} files come from {source.name}.")
    missing = [file.name for file in files if file.name not in contents]
    if missing:
        raise DatasetError(
            f"Fashion-MNIST: none of {len(sources)} sources has an intact {' or '.join(missing)}. "
            f"Connect to a network, install {DEBIAN_PACKAGE}, or use data={GENERATED!r}."
        )
    return contents, " and ".join(givers)


def limit_of(file: DataFile, limit: int | None) -> int:
    """The number of entries of ``file`` to use."""
    return file.shape[0] if limit is None else min(limit, file.shape[0])


def boxed(text: str) -> str:
    """The lines of ``text`` in a frame."""
    lines = text.splitlines()
    width = max(map(len, lines))
    frame = "═" * (width + 2)
    return "\n".join([f"╔{frame}╗", *(f"║ {line:<{width}} ║" for line in lines), f"╚{frame}╝"])


def _checked(path: Path) -> Directory:
    directory = Directory(path)
    if not path.is_dir():
        raise DatasetError(
            f"{path} is not a directory. Name one with the four files of Fashion-MNIST, or use {GENERATED!r}."
        )
    if not any(any(directory.places(file)) for file in FILES):
        names = ", ".join(f"{file.name}.gz" for file in FILES)
        raise DatasetError(f"{path} holds no file of Fashion-MNIST. Expected there: {names}.")
    return directory


_STAND_IN = """\
WARNING: this is NOT Fashion-MNIST.
No source of the real data could be reached (see the lines above), so generated
drawings of ten kinds of garment are used instead. Everything runs, but the accuracy
says nothing about Fashion-MNIST. To use the real data, connect to a network, install
the package dataset-fashion-mnist, or set PILOTAGE_DATA to a directory with the files."""
