"""Habana's bridge to TensorFlow, whose entry point some torch scripts call too."""

from __future__ import annotations

from pilotage.engine import Warned, log_event


def load_habana_module() -> None:
    """Log that TensorFlow stays on the CPU; torch is not affected."""
    message = "load_habana_module: no Gaudi found, so TensorFlow stays on the CPU; torch is not affected."
    log_event(Warned(message=message))
