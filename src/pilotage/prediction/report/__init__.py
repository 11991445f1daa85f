"""One self-contained HTML page from one report, or from two that are compared."""

from __future__ import annotations

from pilotage.prediction.report.page import page_of

__all__ = ["page_of"]
