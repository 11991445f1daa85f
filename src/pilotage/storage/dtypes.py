"""How the elements of tensors are stored: under the names of safetensors, or as elements of another type."""

from __future__ import annotations

import torch
from torch import Tensor

from pilotage.errors import ProgramFileError

STORED_NAMES: dict[torch.dtype, str] = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint64: "U64",
    torch.uint32: "U32",
    torch.uint16: "U16",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
"""What every version of safetensors can read."""

STORED_AS: dict[torch.dtype, torch.dtype] = {
    torch.complex128: torch.float64,
    torch.complex64: torch.float32,
    torch.complex32: torch.float16,
    torch.float8_e4m3fnuz: torch.uint8,
    torch.float8_e5m2fnuz: torch.uint8,
    torch.float8_e8m0fnu: torch.uint8,
    torch.float4_e2m1fn_x2: torch.uint8,
}
"""What stands in for other types: a complex number is two real ones, in one more dimension."""

BY_NAME = {str(dtype).removeprefix("torch."): dtype for dtype in (*STORED_NAMES, *STORED_AS)}
"""The types that a file may name."""


def name_of(dtype: torch.dtype) -> str:
    """What a type is called in our own data."""
    return str(dtype).removeprefix("torch.")


def check_storable(name: str, tensor: Tensor) -> None:
    """Raise where a tensor could not be stored, or not be read again."""
    if tensor.layout is not torch.strided or tensor.device.type == "meta":
        raise ProgramFileError(
            f"The tensor {name} cannot be stored: it is {tensor.layout} on {tensor.device}. Only dense tensors with values can."
        )
    if tensor.dtype not in STORED_NAMES and tensor.dtype not in STORED_AS:
        raise ProgramFileError(
            f"The tensor {name} cannot be stored: {tensor.dtype} is not among {', '.join(sorted(BY_NAME))}."
        )


def as_stored(tensor: Tensor) -> Tensor:
    """A tensor as it is stored: on the host, dense, and of a type that safetensors knows."""
    plain = tensor.detach().to("cpu").resolve_conj().resolve_neg()
    if plain.dtype.is_complex:
        return torch.view_as_real(plain).contiguous()
    return plain.contiguous().view(STORED_AS.get(plain.dtype, plain.dtype))


def stored_shape(shape: tuple[int, ...], dtype: torch.dtype) -> tuple[int, ...]:
    """The shape that a tensor has in a file."""
    return (*shape, 2) if dtype.is_complex else shape


def from_stored(stored: Tensor, dtype: torch.dtype) -> Tensor:
    """The tensor that was stored, on the same memory."""
    stored = checked_values(stored)
    return torch.view_as_complex(stored) if dtype.is_complex else stored.view(dtype)


def checked_values(stored: Tensor) -> Tensor:
    """A tensor as it was read; raises a ValueError where a truth value is neither 0 nor 1, which kernels misread."""
    if stored.dtype is torch.bool and stored.numel() and int(stored.view(torch.uint8).max()) > 1:
        raise ValueError("it holds a truth value that is neither 0 nor 1")
    return stored


def raw_bytes(stored: Tensor) -> memoryview:
    """The memory of a dense tensor on the host."""
    if not stored.numel():
        return memoryview(b"")
    return memoryview(stored.reshape(-1).view(torch.uint8).numpy())  # type: ignore[arg-type]
