"""Maps CUDA devices in arguments to the card."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch

from habana_frameworks.torch.gpu_migration.calls import Kind, call_text, log_call

_KEYWORDS = ("device", "device_type", "map_location", "pin_memory_device")


def on_card(value: Any) -> Any:
    """Replace a CUDA device of any index by the card (each process has one), and return other values unchanged."""
    if isinstance(value, torch.device):
        # A bare integer has already become a card with that index.
        return torch.device("hpu") if value.type == "cuda" or (value.type == "hpu" and value.index) else value
    if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
        return "hpu"
    return "hpu" if isinstance(value, int) and not isinstance(value, bool) else value


def with_devices_mapped(original: Callable[..., Any], name: str, *, mapped_arguments: int = 0) -> Callable[..., Any]:
    """Wrap a function so that CUDA devices in keywords or in its first arguments become the card."""

    @wraps(original, updated=())
    def mapped(*args: Any, **kwargs: Any) -> Any:
        changed = {key: on_card(kwargs[key]) for key in _KEYWORDS if key in kwargs}
        first = tuple(on_card(each) for each in args[:mapped_arguments])
        if _is_same(changed.values(), (kwargs[key] for key in changed)) and _is_same(first, args):
            return original(*args, **kwargs)
        before, args, kwargs = call_text(name, args, kwargs), (*first, *args[mapped_arguments:]), kwargs | changed
        log_call(Kind.MODIFIED, before, call_text(name, args, kwargs))
        return original(*args, **kwargs)

    return mapped


def _is_same(ones: Any, others: Any) -> bool:
    return all(one is other for one, other in zip(ones, others, strict=False))


_TORCHS_GENERATOR = torch.Generator


class _AnyGenerator(type):
    """Creates torch's generators, with the card in place of CUDA."""

    def __call__(cls, device: Any = "cpu") -> torch.Generator:
        mapped = on_card(device)
        if mapped is not device:
            log_call(
                Kind.MODIFIED, call_text("torch.Generator", (device,), {}), call_text("torch.Generator", (mapped,), {})
            )
        return _TORCHS_GENERATOR(mapped)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _TORCHS_GENERATOR)


class Generator(metaclass=_AnyGenerator):
    """torch's Generator, which cannot be subclassed."""
