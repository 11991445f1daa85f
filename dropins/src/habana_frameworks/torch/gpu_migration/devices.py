"""Devices, types of device and backends of CUDA as those of the card."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch

from habana_frameworks.torch.gpu_migration.calls import Kind, note, said

_KEYWORDS = ("device", "device_type", "map_location", "pin_memory_device")


def on_card(value: Any) -> Any:
    """The card in place of a CUDA device, whatever its number: each process sees one. Everything else as it is."""
    if isinstance(value, torch.device):
        # A bare number has become a card of that number by the time it comes here.
        return torch.device("hpu") if value.type == "cuda" or (value.type == "hpu" and value.index) else value
    if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
        return "hpu"
    return "hpu" if isinstance(value, int) and not isinstance(value, bool) else value


def with_devices_mapped(original: Callable[..., Any], name: str, *, mapped_arguments: int = 0) -> Callable[..., Any]:
    """Make a function that sees the card where a CUDA device is given by keyword, or among its first arguments."""

    @wraps(original, updated=())
    def mapped(*args: Any, **kwargs: Any) -> Any:
        changed = {key: on_card(kwargs[key]) for key in _KEYWORDS if key in kwargs}
        first = tuple(on_card(each) for each in args[:mapped_arguments])
        if _is_same(changed.values(), (kwargs[key] for key in changed)) and _is_same(first, args):
            return original(*args, **kwargs)
        before, args, kwargs = said(name, args, kwargs), (*first, *args[mapped_arguments:]), kwargs | changed
        note(Kind.MODIFIED, before, said(name, args, kwargs))
        return original(*args, **kwargs)

    return mapped


def _is_same(ones: Any, others: Any) -> bool:
    return all(one is other for one, other in zip(ones, others, strict=False))


class _AnyGenerator(type):
    """Makes torch's own generators, for the card where CUDA is asked for."""

    def __call__(cls, device: Any = "cpu") -> torch.Generator:
        mapped = on_card(device)
        if mapped is not device:
            note(Kind.MODIFIED, said("torch.Generator", (device,), {}), said("torch.Generator", (mapped,), {}))
        return torch._C.Generator(mapped)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, torch._C.Generator)


class Generator(metaclass=_AnyGenerator):
    """torch's Generator, which cannot be derived from."""
