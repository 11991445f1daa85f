"""The input of the compiling process: a program and a sample micro-batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pilotage.compiler.operator_libraries import OperatorLibraries
from pilotage.program.program import Action, Program
from pilotage.program.specification import TensorSpec
from pilotage.storage.archive import read_archive, write_archive
from pilotage.storage.fingerprint import Fingerprint
from pilotage.storage.permission import TRUSTED
from pilotage.storage.program_text import program_from_data, program_to_data


@dataclass(frozen=True, kw_only=True)
class CompileJob:
    """One program to compile."""

    program: Program
    fingerprint: Fingerprint
    cache: Path
    device: torch.device
    runs: Mapping[Action, int]
    """How often each action runs in one host call."""

    inputs: Mapping[Action, Sequence[Tensor]]
    """What each action takes after its state, for realistic timing: most often a sample micro-batch."""

    buffers: Mapping[str, Tensor]
    threads: int
    compiler_threads: int
    precision: Mapping[str, Any]
    """Torch's precision settings."""

    must_compile: bool = False
    """Use compiled code even if it is slower."""

    about: Mapping[str, str] = field(default_factory=dict)
    """A description of the program, shown by `pilotage cache`."""

    def write(self, path: Path) -> None:
        """Write the job to a file, without pickle."""
        program, constants = program_to_data(self.program)
        content = {
            "program": program,
            "parts": dict(self.fingerprint.parts),
            "cache": str(self.cache),
            "device": str(self.device),
            "runs": {action.value: count for action, count in self.runs.items()},
            "threads": self.threads,
            "compiler_threads": self.compiler_threads,
            "precision": dict(self.precision),
            "libraries": OperatorLibraries.of(self.program).to_data(),
            "must_compile": self.must_compile,
            "about": dict(self.about),
            "inputs": {action.value: [_strides(each) for each in given] for action, given in self.inputs.items()},
        }
        tensors = {f"constant/{name}": tensor for name, tensor in constants.items()}
        tensors |= {f"buffer/{name}": tensor for name, tensor in self.buffers.items()}
        for action, inputs in self.inputs.items():
            tensors |= {f"input/{action.value}/{number}": tensor for number, tensor in enumerate(inputs)}
        # The file is useless after a crash, so there is no need to wait for the disk.
        write_archive(path, content, tensors, durable=False)

    @classmethod
    def read(cls, path: Path) -> CompileJob:
        """Read a job from a file."""
        content, tensors = read_archive(path)
        # Reading a program looks up its operators.
        OperatorLibraries.from_data(content["libraries"]).load()
        return cls(
            program=program_from_data(content["program"], _named(tensors, "constant/"), TRUSTED),
            fingerprint=Fingerprint(content["parts"]),
            cache=Path(content["cache"]),
            device=torch.device(content["device"]),
            runs={Action(action): count for action, count in content["runs"].items()},
            inputs={
                Action(action): [
                    _with_strides(tensors[f"input/{action}/{number}"], stride) for number, stride in enumerate(strides)
                ]
                for action, strides in content["inputs"].items()
            },
            buffers=_named(tensors, "buffer/"),
            threads=content["threads"],
            compiler_threads=content["compiler_threads"],
            precision=content["precision"],
            must_compile=content["must_compile"],
            about=content["about"],
        )


def _strides(tensor: Tensor) -> list[int]:
    """The strides of a tensor without gaps."""
    return list(TensorSpec.of(tensor).dense.stride)


def _with_strides(tensor: Tensor, strides: Sequence[int]) -> Tensor:
    """The tensor in another memory layout; files have none."""
    return TensorSpec(tuple(tensor.shape), tuple(strides), tensor.dtype).empty(tensor.device).copy_(tensor)


def _named(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
