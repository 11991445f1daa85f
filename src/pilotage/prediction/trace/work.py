"""The work of one operation: its arithmetic, and the bytes that it reads and writes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["MATRIX_PRODUCTS", "Convolution", "Product", "Work", "WorkKind"]


class WorkKind(Enum):
    """How an operation spends its time."""

    FREE = "free"
    """Views and other operations that compute nothing."""
    PRODUCT = "product"
    CONVOLUTION = "convolution"
    ATTENTION = "attention"
    ELEMENTWISE = "elementwise"
    REDUCTION = "reduction"
    NORMALIZATION = "normalization"
    RANDOM = "random"
    RESIZING = "resizing"
    """Pooling and interpolation."""
    GATHER = "gather"
    TRANSPOSITION = "transposition"
    """Copies into another order."""
    TRANSFER = "transfer"
    """Copies from or to the host's memory."""


MATRIX_PRODUCTS = frozenset({WorkKind.PRODUCT, WorkKind.CONVOLUTION, WorkKind.ATTENTION})
"""Kinds of operations that multiply matrices."""


@dataclass(frozen=True, slots=True)
class Product:
    """A batch of matrix products (m, k) x (k, n)."""

    batch: int
    m: int
    n: int
    k: int

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        return 2 * self.batch * self.m * self.n * self.k


@dataclass(frozen=True, slots=True)
class Convolution:
    """One pass of a convolution, as the matrix product that computes it.

    ``pixels`` are positions of the output and the batch, ``taps`` those of the kernel.
    """

    pixels: int
    channels_in: int
    """Of one group."""

    channels_out: int
    """Of one group."""

    taps: int
    groups: int
    way: str
    """``forward``, ``input`` or ``weight``."""

    moved: int
    """Bytes of input and output, which some layouts have to be reordered for."""

    channels_last: bool = False
    is_plain: bool = False
    """Whether each pixel is multiplied by itself: one tap, no stride."""

    images: tuple[tuple[int, int], ...] = ()
    """Pixels and channels of input and output."""

    aligned: bool = True
    """Whether each channel of an image begins at a multiple of 16 bytes, in the layout channels-first."""

    weight_bytes: int = 0

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        return 2 * self.pixels * self.channels_in * self.channels_out * self.taps * self.groups


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """The work of one operation.

    Large because different models of devices need different properties of it.
    """

    kind: WorkKind
    type: str = "float32"
    """The type that products multiply in."""

    flops: int = 0
    read: int = 0
    written: int = 0
    """Bytes."""

    parts: tuple[Product | Convolution, ...] = ()
    """The matrix products and convolutions that it consists of."""

    tensors: int = 1
    """Tensors that it handles in one go, for operations on lists."""

    lanes: int = 0
    """How many sums a normalisation has, each of which one processor computes; 0 if that does not matter."""

    elements: int = 0
    """The elements of its largest tensor."""

    passes: float = 1.0
    """How often it reads its operands."""

    backward: bool = False
    causal: bool = False
    """Whether attention leaves out the later half of its scores."""

    mixed: bool = False
    """Whether operands have different types; on lists, that takes a kernel for each tensor."""

    strided: bool = False
    """Whether it copies between tensors whose rows are in different orders."""

    split: bool = False
    """Whether it sums many numbers into few, so that several processors share each sum."""

    rows: int = 0
    """The rows of a layer normalisation."""

    aligned: bool = True
    """Whether the rows of all matrices begin at multiples of 16 bytes."""

    kernels: int = 0
    """How many kernels it starts on a card; 0 if the kind of operation determines it."""

    workspace: int = 0
    """Bytes of temporary memory, if the operation determines them itself."""

    @property
    def bytes(self) -> int:
        """What it reads and writes."""
        return self.read + self.written
