"""The typed tensors of the card, such as torch.hpu.FloatTensor."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor


class _TypedTensor(type):
    """Makes tensors of one type on the card."""

    dtype: torch.dtype

    def __call__(cls, *args: Any, **kwargs: Any) -> Tensor:
        wanted = {"device": torch.device("hpu"), "dtype": cls.dtype}
        for name, value in wanted.items():
            given = kwargs.get(name, value)
            is_same = torch.device(given).type == "hpu" if name == "device" else given == value
            if not is_same:
                raise RuntimeError(f"torch.hpu.{cls.__name__} makes {cls.dtype} on hpu, but {name}={given} was given.")
        return torch.tensor(*args, **{**kwargs, **wanted})

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and instance.device.type == "hpu" and instance.dtype == cls.dtype


class BFloat16Tensor(metaclass=_TypedTensor):
    """A tensor of bfloat16."""

    dtype: ClassVar[torch.dtype] = torch.bfloat16


class BoolTensor(metaclass=_TypedTensor):
    """A tensor of truth values."""

    dtype: ClassVar[torch.dtype] = torch.bool


class ByteTensor(metaclass=_TypedTensor):
    """A tensor of uint8."""

    dtype: ClassVar[torch.dtype] = torch.uint8


class CharTensor(metaclass=_TypedTensor):
    """A tensor of int8."""

    dtype: ClassVar[torch.dtype] = torch.int8


class DoubleTensor(metaclass=_TypedTensor):
    """A tensor of float64."""

    dtype: ClassVar[torch.dtype] = torch.float64


class FloatTensor(metaclass=_TypedTensor):
    """A tensor of float32."""

    dtype: ClassVar[torch.dtype] = torch.float32


class HalfTensor(metaclass=_TypedTensor):
    """A tensor of float16."""

    dtype: ClassVar[torch.dtype] = torch.float16


class IntTensor(metaclass=_TypedTensor):
    """A tensor of int32."""

    dtype: ClassVar[torch.dtype] = torch.int32


class LongTensor(metaclass=_TypedTensor):
    """A tensor of int64."""

    dtype: ClassVar[torch.dtype] = torch.int64


class ShortTensor(metaclass=_TypedTensor):
    """A tensor of int16."""

    dtype: ClassVar[torch.dtype] = torch.int16
