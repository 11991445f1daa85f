"""The four files of Fashion-MNIST."""

from __future__ import annotations

from dataclasses import dataclass

CLASSES: tuple[str, ...] = (
    "T-shirt",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
"""The kinds of garment, in the order of their labels."""

SIDE = 28
"""Height and width of every picture, in pixels."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DataFile:
    """One file in IDX format, distributed gzipped."""

    name: str
    """Without the suffix ``.gz``."""

    shape: tuple[int, ...]

    sha256: str
    """Of the decompressed content, because sources compress it differently."""


TRAIN_IMAGES = DataFile(
    name="train-images-idx3-ubyte",
    shape=(60_000, SIDE, SIDE),
    sha256="c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
)
TRAIN_LABELS = DataFile(
    name="train-labels-idx1-ubyte",
    shape=(60_000,),
    sha256="bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
)
TEST_IMAGES = DataFile(
    name="t10k-images-idx3-ubyte",
    shape=(10_000, SIDE, SIDE),
    sha256="5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
)
TEST_LABELS = DataFile(
    name="t10k-labels-idx1-ubyte",
    shape=(10_000,),
    sha256="0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
)
FILES: tuple[DataFile, ...] = (TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS)
