"""Diagnostics of the card's compiler and memory; the emulation has neither, so they do nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from habana_frameworks.torch.utils.debug.logger import Logger as Logger
from pilotage.engine import storage_address


def _is_enabled_synapse_layout_handling() -> bool:
    """Whether the card's compiler chooses the layout of weights."""
    return True


def _is_enabled_weight_permute_pass() -> bool:
    """Whether the bridge permutes weights itself."""
    return False


def _is_enabled_lazy_collectives() -> bool:
    """Whether collectives are part of lazy graphs."""
    return False


def _get_fallback_op_count() -> dict[str, int]:
    """Return how often each operation fell back to the CPU; none does here."""
    return {}


def _get_jit_cache_size() -> int:
    """Return the number of compiled graphs in memory: always 0."""
    return 0


def get_tensor_info(tensor: Tensor) -> tuple[int, int] | None:
    """Return address and bytes of a tensor on the card; None for others."""
    if tensor.device.type != "hpu":
        return None
    storage = tensor.untyped_storage()
    return storage_address(storage), storage.nbytes()


def _ignored(*args: Any, **kwargs: Any) -> None:
    """Do nothing: the card's compiler and driver are not here."""


_DIAGNOSTICS = (
    "_bridge_cleanup",
    "_clear_jit_cache",
    "_hb_print",
    "_hg_print",
    "_mem_log",
    "_memstat_livealloc",
    "_set_module_name",
    "clear_dynamic_bucket_recipe_info",
    "load_ds_checkpoint",
    "save_ds_checkpoint",
)


def __getattr__(name: str) -> Callable[..., None]:
    if name in _DIAGNOSTICS or name.startswith(("_dump_", "_enable_")):
        return _ignored
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
