"""One call of an executor, as tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor

from pilotage.errors import BatchDimensionError, InputError
from pilotage.program.signature import CallSignature
from pilotage.program.specification import TensorSpec, contiguous_strides
from pilotage.program.structure import Parsers, Structure, call_paths, flatten, plain_tensors
from pilotage.runtime.call_comparison import refuse_difference

Conversions = Mapping[torch.dtype, Callable[[Tensor], Tensor]]
"""Conversions of inputs whose type the program does not take."""

_FORM = attrgetter("shape", "dtype")
"""The properties of an input that a program is compiled for."""


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """The kind of call that a program was compiled for."""

    arguments: Structure
    inputs: tuple[TensorSpec, ...]
    forms: list[tuple[tuple[int, ...], torch.dtype]]
    """The shapes and types of the inputs."""

    plain: int | None
    """The number of arguments if all are positional tensors, otherwise None."""


# Not frozen: one is created in every call, and creating a frozen one takes three times as long.
@dataclass(slots=True)
class BoundCall:
    """The bound arguments of a call."""

    arguments: Structure
    tensors: Sequence[Tensor]
    """As the user passed them."""

    inputs: Sequence[Tensor]
    """As the program takes them: contiguous, and without gradients."""

    fits: ExpectedCall | None = None
    """The expected call that this one matched when it was bound; None if it matched none."""

    @property
    def specifications(self) -> tuple[TensorSpec, ...]:
        """The specifications of the inputs."""
        return tuple(TensorSpec.of(tensor) for tensor in self.inputs)

    def write_back(self, written: Sequence[int]) -> None:
        """Copy what the program wrote to its inputs back to the user's tensors."""
        for position in written:
            given, used = self.tensors[position], self.inputs[position]
            if given.data_ptr() != used.data_ptr() and _was_written(used):
                given.detach().copy_(used)


class CallBinder:
    """Binds the arguments of calls, and checks that later calls match the first."""

    def __init__(
        self,
        signature: CallSignature,
        micro_batches: int,
        parsers: Parsers,
        conversions: Conversions | None = None,
    ) -> None:
        self.signature = signature
        self._conversions = conversions or {}
        self._micro_batches = micro_batches
        self._parsers = parsers
        self.expected: ExpectedCall | None = None
        """What calls have to match; None before the first."""

    def bind(self, *args: Any, **kwargs: Any) -> BoundCall:
        """Bind the arguments of a call in the order of the program's inputs."""
        tensors: Sequence[Tensor]
        expected = self.expected
        is_plain = expected is not None and len(args) == expected.plain and not kwargs
        if expected is not None and is_plain and all(isinstance(each, Tensor) for each in args):
            # Positional tensors as in the first call: no binding or flattening is needed.
            tensors, arguments = args, expected.arguments
        else:
            tensors, arguments = flatten(self.signature.bind(args, kwargs), self._parsers)
        inputs = []
        for tensor in tensors:
            if tensor.layout is not torch.strided:
                raise InputError(
                    f"An input has the layout {tensor.layout}, but a program takes only dense tensors. Pass "
                    "to_dense(), or pass its indices and values and rebuild it in forward."
                )
            given = tensor.detach() if tensor.requires_grad else tensor
            if given.dtype in self._conversions:
                given = self._conversions[given.dtype](given)
            inputs.append(given if given.is_contiguous() else given.contiguous())
        if expected is None or list(map(_FORM, inputs)) != expected.forms:
            return BoundCall(arguments, tensors, inputs)
        is_like_it = arguments is expected.arguments or arguments == expected.arguments
        return BoundCall(arguments, tensors, inputs, fits=expected if is_like_it else None)

    def micro_batch(self, call: BoundCall) -> tuple[TensorSpec, ...]:
        """The specification of one micro-batch; raises if the call cannot be split into micro-batches."""
        return tuple(map(self._part, call.inputs, call_paths(call.arguments, self.signature.names)))

    def expect(self, arguments: Structure, micro_batch: Sequence[TensorSpec]) -> None:
        """Check all later calls against the call that the program was compiled for."""
        inputs = tuple(self._whole(part) for part in micro_batch)
        forms = [(each.shape, each.dtype) for each in inputs]
        self.expected = ExpectedCall(arguments, inputs, forms, plain_tensors(arguments))

    def check(self, call: BoundCall) -> None:
        """Refuse a call that differs from the first."""
        expected = self.expected
        if expected is not None and call.fits is not expected:
            given, names = call.specifications, self.signature.names
            refuse_difference(expected.arguments, call.arguments, expected.inputs, given, names)

    def has_other_shapes(self, call: BoundCall) -> bool:
        """Whether a call differs from the first only in the shapes of its tensors."""
        expected, forms = self.expected, list(map(_FORM, call.inputs))
        if expected is None or expected.forms == forms or expected.arguments != call.arguments:
            return False
        return [dtype for _, dtype in forms] == [dtype for _, dtype in expected.forms]

    def divide(self, micro_batches: int) -> None:
        """Divide later calls into this many micro-batches."""
        self._micro_batches = micro_batches

    def forget(self) -> None:
        """Forget the first call: the next one takes its place."""
        self.expected = None

    def _whole(self, part: TensorSpec) -> TensorSpec:
        if self._micro_batches == 1:
            return part
        shape = (part.shape[0] * self._micro_batches, *part.shape[1:])
        return TensorSpec(shape, contiguous_strides(shape), part.dtype)

    def _part(self, tensor: Tensor, path: str) -> TensorSpec:
        shape = tuple(tensor.shape)
        if 0 in shape:
            raise InputError(f"Zero-sized tensors are unsupported (Got shape {list(shape)}) for input {path}.")
        parts = self._micro_batches
        if parts == 1:
            return TensorSpec.of(tensor)
        size = shape[0] if shape else 1
        if not shape or size % parts:
            raise BatchDimensionError(
                f"Invalid batch dimension: In the input {path}, the batch dimension ({size}) must be a multiple of "
                f"{parts}, the number of micro-batches that one call consumes: device iterations x replicas x gradient "
                f"accumulation. The shape given is {list(shape)}; scalars must be repeated once per micro-batch."
            )
        micro = (size // parts, *shape[1:])
        return TensorSpec(micro, contiguous_strides(micro), tensor.dtype)


def _was_written(copy: Tensor) -> bool:
    """Whether a tensor may have been written to since it was created; inference tensors do not count writes."""
    return copy.is_inference() or copy._version > 0


def first_micro_batch(call: BoundCall, parts: Sequence[TensorSpec]) -> list[Tensor]:
    """A copy of the first micro-batch of a call."""
    pairs = zip(call.inputs, parts, strict=True)
    return [tensor.reshape(-1)[: part.elements].reshape(part.shape).clone() for tensor, part in pairs]


def empty_micro_batch(parts: Sequence[TensorSpec]) -> list[Tensor]:
    """Zeros in the shape of a micro-batch whose values are not known yet."""
    return [torch.zeros(part.shape, dtype=part.dtype) for part in parts]
