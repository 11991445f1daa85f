"""Trace functions of Graphcore's libpvti: channels, tracepoints and graphs, in the file that PVTI_OPTIONS asks for.

Pilotage serves this package only if no libpvti is installed. Tracepoints also appear in torch's profiler. The file is
JSON for Perfetto and chrome://tracing; see `poptorch.profiling`.
"""

from __future__ import annotations

from libpvti.tracing import (
    Graph,
    GraphSeries,
    Tracepoint,
    createTraceChannel,
    instrument,
    instrument_fn,
    isEnabled,
)

__all__ = ["Graph", "GraphSeries", "Tracepoint", "createTraceChannel", "instrument", "instrument_fn", "isEnabled"]

__pilotage_facade__ = True
"""Errors name the user's own line, and none of this package."""
