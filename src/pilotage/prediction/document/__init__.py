"""The document that predictions and profiles are written to and reports are made from, as values and as JSON."""

from __future__ import annotations

from pilotage.prediction.document.device import Change, Device, Expensive, Measured
from pilotage.prediction.document.files import parse_report, read_report, report_text, write_report
from pilotage.prediction.document.memory import (
    LayerMemory,
    LiveTensor,
    Memory,
    Peak,
    StageMemory,
    TileBin,
    TileMemory,
    Timeline,
)
from pilotage.prediction.document.numbers import Range, Source
from pilotage.prediction.document.operations import Operation
from pilotage.prediction.document.report import FORMAT, ProgramSummary, Report
from pilotage.prediction.document.timing import Host, HostEntry, Pipeline, PipelineEntry, Throughput, Time

__all__ = [
    "FORMAT",
    "Change",
    "Device",
    "Expensive",
    "Host",
    "HostEntry",
    "LayerMemory",
    "LiveTensor",
    "Measured",
    "Memory",
    "Operation",
    "Peak",
    "Pipeline",
    "PipelineEntry",
    "ProgramSummary",
    "Range",
    "Report",
    "Source",
    "StageMemory",
    "Throughput",
    "TileBin",
    "TileMemory",
    "Time",
    "Timeline",
    "parse_report",
    "read_report",
    "report_text",
    "write_report",
]
