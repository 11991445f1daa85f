"""Finding the data set: one source after another, and a drawn stand-in where all of them fail."""

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
"""Asks for the drawn stand-in by name."""

Say = Callable[[str], None]


def say_on_stderr(line: str) -> None:
    """Tell the user, and leave standard output to results."""
    print(line, file=sys.stderr, flush=True)


def load(
    data: str | Path | None = None,
    *,
    limit: int | None = None,
    sources: Sequence[Source] | None = None,
    say: Say = say_on_stderr,
) -> Splits:
    """Fashion-MNIST, from ``data`` or from wherever it can be had.

    ``data`` is a directory to look into first, or the word ``generated``; ``limit`` is the most pictures wanted of
    each split; ``sources`` are searched in place of the standard ones. Whoever names a directory gets the real data or
    a DatasetError; whoever does not may get drawn garments, and is told so.
    """
    if limit is not None and limit < 1:
        raise OptionError(f"limit is {limit}. It has to be at least 1, or None for all.")
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
        Directory(cache, remedy="It is fetched again."),
        Directory(DEBIAN_DIRECTORY),
        Website(cache),
        DebianPackage(cache),
    ]


def gather(files: Sequence[DataFile], sources: Sequence[Source], say: Say) -> tuple[dict[str, bytes], str]:
    """The checked content of every file, by name, and the sources that gave it."""
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
            f"Fashion-MNIST: none of {len(sources)} sources has a sound {' or '.join(missing)}. "
            f"Connect to a network, install {DEBIAN_PACKAGE}, or ask for data={GENERATED!r}."
        )
    return contents, " and ".join(givers)


def limit_of(file: DataFile, limit: int | None) -> int:
    """How many entries of ``file`` are wanted."""
    return file.shape[0] if limit is None else min(limit, file.shape[0])


def boxed(text: str) -> str:
    """The lines of ``text`` in a frame that is hard to miss."""
    lines = text.splitlines()
    width = max(map(len, lines))
    frame = "═" * (width + 2)
    return "\n".join([f"╔{frame}╗", *(f"║ {line:<{width}} ║" for line in lines), f"╚{frame}╝"])


def _checked(path: Path) -> Directory:
    directory = Directory(path)
    if not path.is_dir():
        raise DatasetError(
            f"{path} is not a directory. Name one with the four files of Fashion-MNIST, or say {GENERATED!r}."
        )
    if not any(any(directory.places(file)) for file in FILES):
        names = ", ".join(f"{file.name}.gz" for file in FILES)
        raise DatasetError(f"{path} holds no file of Fashion-MNIST. Expected there: {names}.")
    return directory


_STAND_IN = """\
WARNING: this is NOT Fashion-MNIST.
No source of the real data could be reached (the lines above say why), so ten kinds
of garment are drawn by a program instead. Everything runs, but the accuracy says
nothing about Fashion-MNIST. To use the real data, connect to a network, install the
package dataset-fashion-mnist, or set PILOTAGE_DATA to a directory that holds it."""
