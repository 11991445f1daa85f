"""Questions about the card, and tools that look for recompilations."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from habana_frameworks.torch import hpu as hpu
from habana_frameworks.torch.utils.experimental._experimental_C import synDeviceType as synDeviceType
from habana_frameworks.torch.utils.experimental.data_shapes import const_shape_dataloader as const_shape_dataloader
from habana_frameworks.torch.utils.experimental.data_shapes import data_dynamicity as data_dynamicity
from habana_frameworks.torch.utils.experimental.recompilation import (
    detect_recompilation_auto_model as detect_recompilation_auto_model,
)


def _get_device_type() -> synDeviceType:
    """Return the generation of the card; the emulated one counts as Gaudi2."""
    return synDeviceType.synDeviceGaudi2


def _is_fp16_supported() -> bool:
    """Whether float16 is supported, which only the first generation lacks."""
    return _get_device_type() is not synDeviceType.synDeviceGaudi


def _data_ptr(t: Tensor) -> int:
    """Return 0: the tensor has no address on a card."""
    return 0


def _compute_stream() -> int:
    """Return 0: the emulation has no streams of the driver."""
    return 0


def _record_param(*args: Any, **kwargs: Any) -> None:
    """Do nothing: names of parameters are for the card's logs."""


def _record_params(model: Any = None, optimizer: Any = None, force_model_update: bool = False) -> None:
    """Do nothing: names of parameters are for the card's logs."""


def _set_profiler_tracer_memory(device_id: int) -> None:
    """Do nothing: the emulation writes no traces."""


def _reset_device_memory() -> None:
    """Do nothing: the memory of the computing device belongs to others too."""
