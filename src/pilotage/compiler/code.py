"""The compiled code of one computation, in a folder: wrapper, kernels and metadata."""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import call, is_
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor

from pilotage.compiler.kernels import CudaKernel, CudaKernelFacts, load_cpp_kernel
from pilotage.compiler.wrapper import Wrapper, for_card, load
from pilotage.errors import ProgramFileError
from pilotage.program.specification import TensorSpec

Reader: TypeAlias = Callable[[str], bytes]
"""Reads a file of the folder by name."""

ALIGNMENT = 16
"""Kernels read and write this many bytes at once."""


@dataclass(frozen=True, kw_only=True)
class CodeFacts:
    """The contents of a folder of compiled code."""

    wrapper: Wrapper
    cpp_kernels: Mapping[str, tuple[str, str]]
    """The library file of each kernel, and its name there."""

    cuda_kernels: Mapping[str, tuple[str, CudaKernelFacts]]
    """The machine code file of each kernel, and how to launch it."""

    arguments: tuple[TensorSpec, ...]
    written: frozenset[int]
    """Arguments that are changed in place."""

    outputs: int
    constants: tuple[Tensor, ...] = ()
    """Tensors that are built into the program; the code takes them after its arguments."""


def write_code(folder: Path, facts: CodeFacts) -> None:
    """Write wrapper and metadata; the files of the kernels are already there."""
    data = {
        "kernels": facts.wrapper.kernels,
        "cpp": {name: list(place) for name, place in facts.cpp_kernels.items()},
        "cuda": {name: [file, kernel.to_data()] for name, (file, kernel) in facts.cuda_kernels.items()},
        "arguments": [[spec.shape, spec.stride, str(spec.dtype).removeprefix("torch.")] for spec in facts.arguments],
        "written": sorted(facts.written),
        "outputs": facts.outputs,
        "constants": [_write_constant(folder, number, each) for number, each in enumerate(facts.constants)],
    }
    (folder / "wrapper.py").write_text(facts.wrapper.source)
    (folder / "code.json").write_text(json.dumps(data))


def read_code(read: Reader) -> CodeFacts:
    """Read what `write_code` wrote."""
    data = json.loads(read("code.json"))
    return CodeFacts(
        wrapper=Wrapper(read("wrapper.py").decode(), tuple(data["kernels"])),
        cpp_kernels={name: _place(value) for name, value in data["cpp"].items()},
        cuda_kernels={name: (file, CudaKernelFacts.from_data(kernel)) for name, (file, kernel) in data["cuda"].items()},
        arguments=tuple(
            TensorSpec(tuple(shape), tuple(stride), getattr(torch, dtype)) for shape, stride, dtype in data["arguments"]
        ),
        written=frozenset(data["written"]),
        outputs=data["outputs"],
        constants=tuple(_read_constant(read, *entry) for entry in data.get("constants", ())),
    )


def _write_constant(folder: Path, number: int, tensor: Tensor) -> list[Any]:
    """Write the bytes of a tensor into a file; returns what is needed to read it."""
    file = f"constant-{number}"
    plain = tensor.detach().cpu().contiguous()
    (folder / file).write_bytes(plain.flatten().view(torch.uint8).numpy().tobytes())
    return [file, list(plain.shape), str(plain.dtype).removeprefix("torch."), tensor.device.type]


def _read_constant(read: Reader, file: str, shape: Sequence[int], dtype: str, device: str) -> Tensor:
    content = bytearray(read(file))
    kind = getattr(torch, dtype)
    tensor = torch.frombuffer(content, dtype=kind).reshape(shape) if content else torch.empty(shape, dtype=kind)
    return tensor.to(device)


def _place(value: str | Sequence[str]) -> tuple[str, str]:
    """File and name of a kernel; in code of older versions each library has one kernel."""
    file, name = (value, "kernel") if isinstance(value, str) else value
    return file, name


class NativeCode:
    """Compiled code that can be called like the graph it was compiled from.

    Compiled code does not check its arguments and would write out of bounds, so they are checked here: the state once,
    as long as the tensors stay the same, and the inputs at every call.
    """

    def __init__(self, folder: Path, device: torch.device, read: Reader | None = None) -> None:
        facts = read_code(read or (lambda name: (folder / name).read_bytes()))
        kernels: dict[str, Any] = {
            name: load_cpp_kernel(folder / file, inside) for name, (file, inside) in facts.cpp_kernels.items()
        }
        for name, (file, kernel) in facts.cuda_kernels.items():
            kernels[name] = CudaKernel(folder / file, kernel, device.index or 0)
        # Code is compiled for the first card of a machine.
        wrapper = for_card(facts.wrapper, device.index) if device.type == "cuda" and device.index else facts.wrapper
        self._call = load(wrapper, kernels, folder.name)
        self._facts = facts
        self._constants = [each if each.is_cpu else each.to(device) for each in facts.constants]
        self._device = device
        self._checked: list[Callable[[], Tensor | None]] = [lambda: None] * len(facts.arguments)
        """The tensors that were valid at the last call; weak, because inputs on a card are large."""

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        """Run the code; it changes arguments in place."""
        if len(tensors) != len(self._facts.arguments):
            raise ProgramFileError(f"Compiled code takes {len(self._facts.arguments)} tensors, but got {len(tensors)}.")
        given = [*tensors, *self._constants]
        # Most are the state of the last call, so this loop runs in C.
        same = map(is_, map(call, self._checked), tensors)
        new = [position for position, is_same in enumerate(same) if not is_same]
        copied = [position for position in new if self._needs_copy(position, tensors[position])]
        for position in copied:
            given[position] = tensors[position].clone()
        copies = [given[position] for position in copied]
        outputs = list(self._call(given))
        for position, copy in zip(copied, copies, strict=True):
            if position in self._facts.written:
                tensors[position].copy_(copy)
        return outputs

    def _needs_copy(self, position: int, tensor: Tensor) -> bool:
        """Check an argument; returns whether its address does not suit the code."""
        expected = self._facts.arguments[position]
        fits = (
            tensor.shape == expected.shape
            and tensor.dtype == expected.dtype
            and tensor.device == self._device
            and _same_strides(tensor, expected)
        )
        if not fits:
            raise ProgramFileError(
                f"Argument {position} of compiled code is {TensorSpec.of(tensor)} with strides {tensor.stride()} on "
                f"{tensor.device}; the code was compiled for {expected} with strides {expected.stride} on "
                f"{self._device}."
            )
        if tensor.data_ptr() % ALIGNMENT:
            return True
        self._checked[position] = weakref.ref(tensor)
        return False


def _same_strides(tensor: Tensor, expected: TensorSpec) -> bool:
    """Whether strides match; the stride of a dimension of size one does not matter."""
    pairs: Sequence[tuple[int, int, int]] = list(zip(expected.shape, tensor.stride(), expected.stride, strict=True))
    return all(size <= 1 or given == wanted for size, given, wanted in pairs)
