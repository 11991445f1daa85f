"""Loads kernels from files with only torch."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from pilotage.options import environment
from pilotage.torch_private import tensor_data_pointer


@dataclass(frozen=True, kw_only=True, slots=True)
class CudaKernelFacts:
    """How to launch a kernel."""

    name: str
    warps: int
    shared: int
    """Bytes of shared memory."""

    types: str
    """One letter for each argument."""

    scratch: int
    """The number of empty scratch arguments after the others."""

    positions: tuple[int, ...]
    """The arguments of a call that the machine code takes."""

    grids: Mapping[tuple[int, ...], tuple[int, int, int]]
    """The grid for each tuple of integer arguments."""

    def to_data(self) -> dict[str, Any]:
        """The facts as plain data."""
        return {**asdict(self), "grids": [[list(numbers), list(grid)] for numbers, grid in self.grids.items()]}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """Restore facts from plain data."""
        grids = {tuple(numbers): tuple(grid) for numbers, grid in data["grids"]}
        return cls(**{**data, "positions": tuple(data["positions"]), "grids": grids})


class CudaKernel:
    """A kernel for NVIDIA cards, launched without Triton."""

    def __init__(self, cubin: Path, facts: CudaKernelFacts, device: int) -> None:
        from pilotage.torch_private import launch_static_kernel, load_static_kernel  # Only in builds with CUDA.

        self._facts = facts
        self._launch = launch_static_kernel
        self._types = facts.types + "O" * facts.scratch
        self._scratch = (None,) * facts.scratch
        # Newer versions of torch return the module in front of these three.
        self._function, _, _ = load_static_kernel(str(cubin), facts.name, facts.shared, device)[-3:]

    def run(self, *arguments: Any, stream: int) -> None:
        """Launch the kernel on a stream."""
        facts = self._facts
        grid = facts.grids[whole_numbers(arguments)]
        taken = (*(arguments[position] for position in facts.positions), *self._scratch)
        self._launch(self._function, *grid, facts.warps, facts.shared, self._types, taken, stream)


def whole_numbers(arguments: tuple[Any, ...]) -> tuple[int, ...]:
    """The integer arguments, which the grid depends on."""
    return tuple(argument for argument in arguments if type(argument) is int)


def load_cpp_kernel(library: Path, name: str = "kernel") -> Callable[..., None]:
    """A CPU kernel of a shared library; each kernel is an extension module of its own."""
    # The library reads the address of torch's function from this variable.
    environment.set_for_native_code("_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR", str(tensor_data_pointer))
    specification = importlib.util.spec_from_file_location(f"{library.stem}.{name}", library)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    kernel: Callable[..., None] = getattr(module, name)
    return kernel
