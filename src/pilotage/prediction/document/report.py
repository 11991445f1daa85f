"""The whole document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pilotage.prediction.document.device import Device
from pilotage.prediction.document.numbers import Count
from pilotage.prediction.document.reading import AtLeast

__all__ = ["FORMAT", "ProgramSummary", "Report"]

FORMAT: Literal["pilotage report 1"] = "pilotage report 1"

_Positive = Annotated[int, AtLeast(1)]


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgramSummary:
    """The program that a report is about."""

    name: str
    mode: Literal["training", "inference"]
    micro_batch: _Positive | None = None
    """Samples that one run of ``forward`` sees."""
    device_iterations: _Positive = 1
    accumulation: _Positive = 1
    replicas: _Positive = 1
    stages: _Positive = 1
    parameters: Count = 0
    precision: str = "float32"


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """A prediction or a profile of one program on one or more devices."""

    format: Literal["pilotage report 1"] = FORMAT
    kind: Literal["prediction", "profile"]
    created: str
    """When it was made, in ISO form with a time zone."""
    title: str
    command: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    machine: Mapping[str, str] = field(default_factory=dict)
    program: ProgramSummary
    devices: tuple[Device, ...]
