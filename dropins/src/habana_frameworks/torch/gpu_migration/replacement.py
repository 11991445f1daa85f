"""Replaces torch's CUDA functions by those of the card, once per process."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

import habana_frameworks.torch.distributed.hccl  # noqa: F401
from habana_frameworks.torch import hpu
from habana_frameworks.torch.gpu_migration import cuda_names
from habana_frameworks.torch.gpu_migration.calls import Kind, call_text, log_call
from habana_frameworks.torch.gpu_migration.devices import Generator, on_card, with_devices_mapped
from habana_frameworks.torch.gpu_migration.stand_ins import standing_in
from pilotage.engine import CUDA_LAZY_INIT, DeviceContext, device_constructors

_NEW = ("new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor", "new_zeros")
_LIKE = ("empty_like", "full_like", "ones_like", "rand_like", "randint_like", "randn_like", "zeros_like")


@cache
def replace_everything() -> None:
    """Replace the module torch.cuda, device arguments, mixed precision, compilation and collectives."""
    _replace_cuda_module()
    _replace_tensor_methods()
    _replace_functions_with_devices()
    _replace_mixed_precision()
    _replace_collectives()
    _replace(torch, "compile", _compile)


def _replace(place: Any, name: str, make: Callable[[Any, str], Any]) -> None:
    """Replace a function by what ``make`` builds from the original and its full name."""
    shown = "torch.Tensor" if place is Tensor else place.__name__
    setattr(place, name, make(getattr(place, name), f"{shown}.{name}"))


def _replace_cuda_module() -> None:
    for name in cuda_names.MATCHING:
        _stand_in(torch.cuda, name, getattr(hpu, name), Kind.MATCH, f"torch.hpu.{name}")
    for name, (theirs, target) in cuda_names.MODIFIED.items():
        _stand_in(torch.cuda, name, theirs, Kind.MODIFIED, target)
    for name in cuda_names.MISMATCHING:
        _stand_in(torch.cuda, name, cuda_names.refusing(name), Kind.MISMATCH, "an error")
    for name in ("mark", "range_pop", "range_push"):
        _stand_in(torch.cuda.nvtx, name, cuda_names.mark_nothing, Kind.MISMATCH, "nothing")
    setattr(torch.cuda, CUDA_LAZY_INIT, lambda: None)


def _stand_in(place: Any, name: str, theirs: Callable[..., Any], kind: Kind, target: str) -> None:
    _replace(place, name, lambda old, called: standing_in(old, called, theirs, kind, target))


def _replace_tensor_methods() -> None:
    _replace(Tensor, "to", lambda old, called: with_devices_mapped(old, called, mapped_arguments=2))
    for name in _NEW:
        _replace(Tensor, name, with_devices_mapped)
    Tensor.cuda = _tensor_to_card  # type: ignore[method-assign, assignment]
    # Scripts use this to check whether their tensors are on the accelerator.
    Tensor.is_cuda = property(lambda tensor: tensor.device.type in ("cuda", "hpu"))  # type: ignore[assignment]


def _tensor_to_card(tensor: Tensor, device: Any = None, non_blocking: bool = False, **layout: Any) -> Tensor:
    """Return a copy of the tensor on the card."""
    log_call(Kind.MODIFIED, call_text("torch.Tensor.cuda", (device,), {}), call_text("torch.Tensor.to", ("hpu",), {}))
    return tensor.to("hpu", non_blocking=non_blocking, **layout)


def _replace_functions_with_devices() -> None:
    # Call this first: torch caches the result, which must contain its own functions.
    constructors = device_constructors()
    named = {getattr(each, "__name__", ""): each for each in constructors}
    names = [name for name, each in named.items() if getattr(torch, name, None) is each]
    for name in (*sorted(names), *_LIKE):
        _replace(torch, name, with_devices_mapped)
    _replace(torch, "load", with_devices_mapped)
    torch.Generator = Generator  # type: ignore[misc, assignment]
    _replace(torch, "set_default_device", lambda old, called: with_devices_mapped(old, called, mapped_arguments=1))
    _replace(
        DeviceContext,
        "__init__",
        lambda old, called: with_devices_mapped(old, called, mapped_arguments=2),
    )
    torch.serialization.register_package(5, lambda storage: None, _load_on_card)


def _load_on_card(storage: Any, location: str) -> Any:
    """Load tensors that were saved from CUDA onto the card."""
    return storage.to(device=torch.device("hpu")) if on_card(location) == "hpu" else None


def _replace_mixed_precision() -> None:
    _replace(torch.autocast, "__init__", lambda old, called: with_devices_mapped(old, called, mapped_arguments=2))
    _replace(torch.amp.GradScaler, "__init__", _on_card_unless_told)
    torch.cuda.amp.autocast = cuda_names.autocast  # type: ignore[misc, assignment]
    torch.cuda.amp.GradScaler = cuda_names.scaler  # type: ignore[misc, assignment]


def _on_card_unless_told(original: Any, called: str) -> Any:
    mapped = with_devices_mapped(original, called, mapped_arguments=2)

    def initialize(self: Any, device: Any = "cuda", *args: Any, **kwargs: Any) -> None:
        mapped(self, device, *args, **kwargs)

    return initialize


def _compile(original: Any, called: str) -> Any:
    def compile(model: Any = None, *, backend: Any = "inductor", **kwargs: Any) -> Any:
        mapped = "hpu_backend" if backend == "inductor" else backend
        # The card's compiler has no modes.
        given = {"backend": backend, **kwargs}
        kwargs.pop("mode", None)
        log_call(Kind.MODIFIED, call_text(called, (), given), call_text(called, (), {"backend": mapped, **kwargs}))
        return original(model, backend=mapped, **kwargs)

    return compile


def _replace_collectives() -> None:
    for name in ("init_process_group", "new_group"):
        _replace(dist, name, _with_hccl)
    _replace(dist, "get_backend", _saying_nccl)
    _stand_in(dist, "is_nccl_available", lambda: True, Kind.MODIFIED, "hccl")
    _replace(DistributedDataParallel, "__init__", _on_the_one_card)


def _with_hccl(original: Any, called: str) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        mapped = tuple(_hccl(each) for each in args), {name: _hccl(value) for name, value in kwargs.items()}
        if mapped != (args, kwargs):
            log_call(Kind.MODIFIED, call_text(called, args, kwargs), call_text(called, *mapped))
        return original(*mapped[0], **mapped[1])

    return call


def _on_the_one_card(original: Any, called: str) -> Any:
    def initialize(
        self: Any, module: Any, device_ids: Any = None, output_device: Any = None, *args: Any, **kwargs: Any
    ) -> None:
        if device_ids is not None or output_device is not None:
            log_call(Kind.MODIFIED, f"DistributedDataParallel(device_ids={device_ids})", "DistributedDataParallel()")
        original(self, module, None, None, *args, **kwargs)

    return initialize


def _hccl(value: Any) -> Any:
    return value.replace("nccl", "hccl").replace("cuda", "hpu") if isinstance(value, str) and "nccl" in value else value


def _saying_nccl(original: Any, called: str) -> Any:
    def get_backend(group: Any = None) -> str:
        found = str(original(group))
        return "nccl" if found == "hccl" else found

    return get_backend
