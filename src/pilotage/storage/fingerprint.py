"""Fingerprints, by which compiled code is found in the cache."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pilotage.cache.store import name_of
from pilotage.program.program import Program
from pilotage.program.specification import TensorSpec, contiguous_strides
from pilotage.storage.program_text import program_to_data


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Everything that compiled code depends on, part by part."""

    parts: Mapping[str, str]

    @property
    def digest(self) -> str:
        """A short digest of all parts."""
        return name_of(self.parts)

    def differences(self, other: Mapping[str, str]) -> list[str]:
        """Descriptions of the parts in which another fingerprint differs."""
        return [
            f"{part} {_change(other.get(part, 'nothing'), value)}"
            for part, value in self.parts.items()
            if other.get(part) != value
        ]


def fingerprint(program: Program, target: Mapping[str, str]) -> Fingerprint:
    """The fingerprint of a program on the target where it will run."""
    data, constants = program_to_data(program)
    graphs = {name: [_without_line(node) for node in entry["nodes"]] for name, entry in data["computations"].items()}
    return Fingerprint(
        {
            "inputs": ", ".join(map(_with_layout, program.inputs)),
            "operations": _digest(graphs)[:12],
            "constants": _digest({name: _content(tensor) for name, tensor in constants.items()})[:12],
            "state": _digest(data["layout"])[:12],
            **target,
        }
    )


def _with_layout(specification: TensorSpec) -> str:
    """A tensor with its strides, unless they are the usual ones."""
    is_usual = specification.stride == contiguous_strides(specification.shape)
    return str(specification) if is_usual else f"{specification} with strides {list(specification.stride)}"


def _change(before: str, now: str) -> str:
    return f"({before} before, now {now})"


def _without_line(node: dict[str, Any]) -> dict[str, Any]:
    """Drop the source line: moving code must not recompile the program."""
    return {key: value for key, value in node.items() if key != "line"}


def _content(tensor: Tensor) -> list[Any]:
    plain = tensor.detach().to("cpu").contiguous()
    data = plain.reshape(-1).view(torch.uint8).numpy().tobytes() if plain.numel() else b""
    return [list(plain.shape), str(plain.dtype), hashlib.sha256(data).hexdigest()]


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
