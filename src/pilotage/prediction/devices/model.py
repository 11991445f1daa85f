"""Models of devices: the numbers that predictions are computed from."""

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
"""How a device runs programs: a card runs one kernel after the other, an IPU all tiles in step, a processor threads."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """The memory of one device."""

    capacity_bytes: int
    """The part that a program can use."""

    rounding_bytes: int = 1
    """Allocations are rounded up to multiples of this."""

    workspace_bytes: int = 0
    """The workspace of the libraries for matrix products."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Compute:
    """The arithmetic of one device: peak rates in operations per second, and what fraction of them is reached."""

    float32: float
    float16: float
    bfloat16: float
    tf32: float = 0.0
    """Float32 products with a mantissa of 10 bits; 0 if the device does not have them."""

    float64: float = 0.0
    """0 stands for half of float32."""

    vector: float = 0.0
    """Operations other than products, such as exp and tanh; 0 stands for the rate of float32."""

    product_efficiency: float = 0.5
    convolution_efficiency: float = 0.5
    """On cards it is multiplied by the fractions in the section [convolutions]."""

    attention_efficiency: float = 0.3
    attention_float32_efficiency: float = 0.5
    misaligned_efficiency: float = 1.0
    """The remaining fraction for half-precision products with unaligned rows, and for convolutions to a number
    of channels that is not a multiple of the device's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Traffic:
    """The memory bandwidth of one device in bytes per second, and which fraction each kind of operation reaches.

    Large because each kind of operation has its own fraction.
    """

    memory: float
    """The bandwidth that streaming operations reach."""

    cache: float = 0.0
    """The same for data in the cache; 0 if the device has none."""

    cache_bytes: int = 0
    normalization: float = 1.0
    """The fraction of the bandwidth that normalisations reach."""

    normalization_seconds: float = 0.0
    """The least time per element of a normalisation; backward takes twice as much."""

    normalization_row_seconds: float = 0.0
    """The time per row in the backward pass of a layer normalisation, which sums over all rows."""

    lane_seconds: float = 0.0
    """The time per element if a single processor sums a whole channel."""

    reduction: float = 1.0
    random: float = 1.0
    resizing: float = 1.0
    resizing_seconds: float = 0.0
    """The least time per element of pooling and interpolation."""

    pool_backward_seconds: float = 0.0
    """The least time per element in the backward pass of max pooling."""

    conversion_seconds: float = 0.0
    """The least time per element of an operation that converts types: to a wider one, or to that of another operand."""

    strided_seconds: float = 0.0
    """The least time per element of a copy between tensors whose rows are in different orders."""

    loss_seconds: float = 0.0
    """The time per pixel if a single processor sums the loss of an image."""

    transposition: float = 1.0
    transposition_seconds: float = 0.0
    """The least time per element of a copy into another memory layout."""

    lists: float = 1.0
    """The fraction of the bandwidth that operations on lists of tensors reach."""

    scatter: float = 0.5
    """The fraction of the bandwidth for writing scattered rows; on an IPU also for reading them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Overheads:
    """Times that do not depend on the amount of data."""

    operation_seconds: float
    """The time of the smallest kernel or operation."""

    product_seconds: float = 0.0
    """Added for a matrix product or a convolution."""

    convolution_seconds: float = 0.0
    """Added for a convolution besides the time for products; twice for each pass of its backward."""

    reduction_seconds: float = 0.0
    split_reduction_seconds: float = 0.0
    """Added instead for a sum of many numbers into few, which several processors share; 0 stands for the value
    above."""

    conversion_seconds: float = 0.0
    """Added for an operation that converts types."""

    resizing_seconds: float = 0.0
    scatter_seconds: float = 0.0
    """Added for summing rows with the same index into a table, as the gradient of an embedding does."""

    call_seconds: float = 0.0
    """The time of one call from the host."""

    eager_seconds: float = 6e-6
    """The time in which Python starts one operation; the device may still work on earlier ones."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProductTiles:
    """How a card divides a product among its processors; an incomplete wave takes as long as a full one."""

    processors: int
    rows: int = 128
    columns: int = 128
    depth: int = 256
    """Added to the inner dimension of each product, for its fixed cost."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Convolutions:
    """How a card computes convolutions: as matrix products, with channels padded to whole blocks.

    Large because each number is measured separately, in float32 and in half precision.
    """

    columns: int = 64
    """Output channels are padded to multiples of this."""

    depth: int = 32
    """In half precision, input channels are padded to multiples of this; in float32, to a quarter of it plus one."""

    narrow_efficiency: float = 1.0
    """The fraction of ``convolution_efficiency`` with fewer output channels than two blocks."""

    half_efficiency: float = 1.0
    """The fraction of ``convolution_efficiency`` in half precision."""

    half_narrow_efficiency: float = 1.0
    input_pass: float = 1.15
    """The time of the backward pass to the input, compared with forward."""

    weight_pass: float = 1.45
    half_input_pass: float = 1.15
    half_weight_pass: float = 1.45
    reordering_seconds: float = 0.0
    """The time per element to convert an image from channels-first into the layout of the kernels."""

    reordering_pixel_seconds: float = 0.0
    """The time per pixel of the same conversion, added to that of its elements."""

    depthwise_seconds: float = 0.0
    """The time per element of a depthwise convolution in channels-first layout."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """The host of a device, and the link between them."""

    link_bytes_per_second: float
    copy_bytes_per_second: float = 1e10
    """The rate of copying a batch into memory that the device can read."""

    loader_bytes_per_second: float = 1.5e8
    """The rate at which one Python thread prepares samples."""

    loader_sample_seconds: float = 2e-5
    """The additional time for each sample."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """The link between two devices of this kind."""

    bytes_per_second: float
    latency_seconds: float = 1e-5
    streaming_bytes_per_second: float = 0.0
    """The link to memory outside of the device, for offloaded tensors; 0 stands for the host's."""

    group: int = 0
    """How many devices this link connects, 0 for all; beyond them ``far_bytes_per_second`` applies."""

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
    """The rate at which one tile receives."""

    supersteps: float = 3.0
    """Compute steps of one operation; each ends with a synchronisation of all tiles."""

    superstep_cycles: float = 1000.0
    """The time to start the workers of all tiles and to synchronise them."""

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
    """For cards only."""

    convolutions: Convolutions = field(default_factory=Convolutions)
    tiles: Tiles | None = None
    """For IPUs only."""

    uncertainty: Uncertainty = field(default_factory=Uncertainty)
    assumptions: tuple[str, ...] = ()
    """Where the numbers come from, for the report."""
