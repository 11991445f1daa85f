"""What a prediction knows about a kind of device."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

__all__ = [
    "Compute",
    "Convolutions",
    "DeviceModel",
    "Host",
    "Kind",
    "Link",
    "Memory",
    "Overheads",
    "ProductTiles",
    "Tiles",
    "Traffic",
    "Uncertainty",
]

Kind = Literal["card", "ipu", "processor"]
"""How programs run on it: kernels one after the other on a card, tiles in step on an IPU, threads on a processor."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """The memory of one device."""

    capacity_bytes: int
    """What a program can use."""

    rounding_bytes: int = 1
    """The allocator gives out multiples of this."""

    workspace_bytes: int = 0
    """What libraries for matrix products keep for themselves."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Compute:
    """The arithmetic of one device: peak rates in operations per second, and what fraction of them is reached."""

    float32: float
    float16: float
    bfloat16: float
    tf32: float = 0.0
    """Float32 products of 10 bits; 0 if there are none."""

    float64: float = 0.0
    """0 takes half of float32."""

    vector: float = 0.0
    """Operations other than products, such as exp and tanh; 0 takes float32."""

    product_efficiency: float = 0.5
    convolution_efficiency: float = 0.5
    """Cards have a section [convolutions] besides, which multiplies it."""

    attention_efficiency: float = 0.3
    attention_float32_efficiency: float = 0.5
    misaligned_efficiency: float = 1.0
    """The fraction that is left of half-precision products whose rows begin anywhere, and of convolutions to a number
    of channels that is not a multiple of the device's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Traffic:
    """How fast the memory of one device is, in bytes per second.

    Large because each kind of operation reaches another part of it.
    """

    memory: float
    """What streaming operations reach."""

    cache: float = 0.0
    """The same for data that still lies in a cache; 0 if there is none."""

    cache_bytes: int = 0
    normalization: float = 1.0
    """The fraction of it that normalisations reach."""

    normalization_seconds: float = 0.0
    """What each element costs a normalisation at least, and in backward twice."""

    normalization_row_seconds: float = 0.0
    """What each row costs the backward pass of a layer normalisation, which sums over all rows."""

    lane_seconds: float = 0.0
    """What each element costs the processor that sums all of a channel."""

    reduction: float = 1.0
    random: float = 1.0
    resizing: float = 1.0
    resizing_seconds: float = 0.0
    """What each element costs pooling and interpolation at least."""

    pool_backward_seconds: float = 0.0
    """What each element costs the backward pass of max pooling at least."""

    conversion_seconds: float = 0.0
    """What each element costs an operation that converts types at least: to a wider type, or between operands."""

    strided_seconds: float = 0.0
    """What each element costs a copy between tensors whose rows lie in another order at least."""

    loss_seconds: float = 0.0
    """What each pixel costs the processor that sums the loss of an image."""

    transposition: float = 1.0
    transposition_seconds: float = 0.0
    """What each element costs a copy into another order at least."""

    lists: float = 1.0
    """The fraction that operations on lists of tensors reach."""

    scatter: float = 0.5
    """The fraction of it that writing to scattered rows reaches; on an IPU also reading them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Overheads:
    """Times that do not depend on the amount of data."""

    operation_seconds: float
    """One kernel or operation, however small."""

    product_seconds: float = 0.0
    """A matrix product or convolution takes this much longer."""

    convolution_seconds: float = 0.0
    """A convolution takes this much longer than a product, and twice as much in each pass of its backward."""

    reduction_seconds: float = 0.0
    split_reduction_seconds: float = 0.0
    """A sum of many numbers into few, which several processors share, takes this much longer instead; 0 takes the one
    above."""

    conversion_seconds: float = 0.0
    """An operation that converts types takes this much longer."""

    resizing_seconds: float = 0.0
    scatter_seconds: float = 0.0
    """Adding up rows that have the same place in a table, as the gradient of an embedding does."""

    call_seconds: float = 0.0
    """One call from the host."""

    eager_seconds: float = 6e-6
    """One operation that Python starts; the device may still work on earlier ones."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProductTiles:
    """How a card divides a product among its processors; a wave that is not full takes as long as a full one."""

    processors: int
    rows: int = 128
    columns: int = 128
    depth: int = 256
    """A product costs as if its inner dimension were longer by this."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Convolutions:
    """How a card computes convolutions: as products, of channels that are filled up to whole blocks.

    Large because each number is measured on its own, in float32 and in half precision.
    """

    columns: int = 64
    """Output channels are filled up to multiples of this."""

    depth: int = 32
    """In half precision, input channels are filled up to multiples of this; float32 takes a quarter, and one more."""

    narrow_efficiency: float = 1.0
    """The fraction of ``convolution_efficiency`` that is reached with fewer output channels than two blocks."""

    half_efficiency: float = 1.0
    """The fraction of it that is reached in half precision."""

    half_narrow_efficiency: float = 1.0
    input_pass: float = 1.15
    """The time of the backward pass to the input, compared with forward."""

    weight_pass: float = 1.45
    half_input_pass: float = 1.15
    half_weight_pass: float = 1.45
    reordering_seconds: float = 0.0
    """What each element costs that is brought from the layout channels-first into that of the kernels."""

    reordering_pixel_seconds: float = 0.0
    """What each pixel costs besides."""

    depthwise_seconds: float = 0.0
    """What each element costs a convolution of single channels in the layout channels-first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """The host of a device, and the way to it."""

    link_bytes_per_second: float
    copy_bytes_per_second: float = 1e10
    """Copying a batch into memory that the device can read."""

    loader_bytes_per_second: float = 1.5e8
    """What one thread of Python prepares."""

    loader_sample_seconds: float = 2e-5
    """What one sample costs it besides."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """The way between two devices of the kind."""

    bytes_per_second: float
    latency_seconds: float = 1e-5
    streaming_bytes_per_second: float = 0.0
    """The way to memory outside of the device, for offloaded tensors; 0 takes the host's."""

    group: int = 0
    """How many devices this link reaches; beyond them ``far_bytes_per_second`` counts. 0: all."""

    far_bytes_per_second: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Tiles:
    """The tiles of an IPU: each has its own memory, and all compute in step."""

    count: int
    memory_bytes: int
    clock_hertz: float
    imbalance: float = 1.15
    """The fullest tile divided by the mean."""

    code_bytes: int = 0
    """Code that every program needs, on all tiles together."""

    operation_code_bytes: int = 0
    """Vertex code, vertex state and exchange code of one operation, on all tiles together."""

    exchange_bytes_per_cycle: float = 4.0
    """What one tile receives."""

    supersteps: float = 3.0
    """Compute steps of one operation; each ends with a synchronisation of all tiles."""

    superstep_cycles: float = 1000.0
    """Starting the workers of all tiles, and synchronising them."""

    partials: float = 1.0
    """Temporary values of a product, divided by its result in float32."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Uncertainty:
    """How far a prediction may be off, as a fraction: low is value / (1 + x), high is value * (1 + x)."""

    memory: float = 0.1
    time: float = 0.3


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceModel:
    """A kind of device.

    Large because each field is a section of its file.
    """

    name: str
    title: str
    kind: Kind
    memory: Memory
    compute: Compute
    traffic: Traffic
    overheads: Overheads
    host: Host
    link: Link
    products: ProductTiles | None = None
    """Only of a card."""

    convolutions: Convolutions = field(default_factory=Convolutions)
    tiles: Tiles | None = None
    """Only of an IPU."""

    uncertainty: Uncertainty = field(default_factory=Uncertainty)
    assumptions: tuple[str, ...] = ()
    """Where the numbers come from, for the report."""
