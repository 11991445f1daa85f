"""How tensors are stored: in a type of safetensors, or as elements of another type."""

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
"""Types that every version of safetensors can read."""

STORED_AS: dict[torch.dtype, torch.dtype] = {
    torch.complex128: torch.float64,
    torch.complex64: torch.float32,
    torch.complex32: torch.float16,
    torch.float8_e4m3fnuz: torch.uint8,
    torch.float8_e5m2fnuz: torch.uint8,
    torch.float8_e8m0fnu: torch.uint8,
    torch.float4_e2m1fn_x2: torch.uint8,
}
"""Substitutes for other types: a complex number is stored as two real ones in an extra dimension."""

BY_NAME = {str(dtype).removeprefix("torch."): dtype for dtype in (*STORED_NAMES, *STORED_AS)}
"""The types that a file may name."""


def dtype_name(dtype: torch.dtype) -> str:
    """The name of a type in our own data."""
    return str(dtype).removeprefix("torch.")


def check_storable(name: str, tensor: Tensor) -> None:
    """Raise if a tensor cannot be stored and read again."""
    if tensor.layout is not torch.strided or tensor.device.type == "meta":
        raise ProgramFileError(
            f"The tensor {name} cannot be stored: it is {tensor.layout} on {tensor.device}. Only dense tensors with "
            "values can be stored."
        )
    if tensor.dtype not in STORED_NAMES and tensor.dtype not in STORED_AS:
        raise ProgramFileError(
            f"The tensor {name} cannot be stored: {tensor.dtype} is not among {', '.join(sorted(BY_NAME))}."
        )


def as_stored(tensor: Tensor) -> Tensor:
    """A tensor in its stored form: on the host, contiguous, in a type of safetensors."""
    plain = tensor.detach().to("cpu").resolve_conj().resolve_neg()
    if plain.dtype.is_complex:
        return torch.view_as_real(plain).contiguous()
    return plain.contiguous().view(STORED_AS.get(plain.dtype, plain.dtype))


def stored_shape(shape: tuple[int, ...], dtype: torch.dtype) -> tuple[int, ...]:
    """The shape of a tensor in a file."""
    return (*shape, 2) if dtype.is_complex else shape


def from_stored(stored: Tensor, dtype: torch.dtype) -> Tensor:
    """The original tensor, in the same memory."""
    stored = checked_values(stored)
    return torch.view_as_complex(stored) if dtype.is_complex else stored.view(dtype)


def checked_values(stored: Tensor) -> Tensor:
    """Check a tensor from a file; raises a ValueError if a boolean is neither 0 nor 1, which kernels misread."""
    if stored.dtype is torch.bool and stored.numel() and int(stored.view(torch.uint8).max()) > 1:
        raise ValueError("it contains a boolean that is neither 0 nor 1")
    return stored


def raw_bytes(stored: Tensor) -> memoryview:
    """The memory of a contiguous tensor on the host."""
    if not stored.numel():
        return memoryview(b"")
    return memoryview(stored.reshape(-1).view(torch.uint8).numpy())  # type: ignore[arg-type]
