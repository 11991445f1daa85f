"""Habana's bridge to TensorFlow, whose entry scripts for torch call too."""

from __future__ import annotations

from pilotage.engine import Warned, log_event


def load_habana_module() -> None:
    """Say that TensorFlow gets no Gaudi here; scripts for torch go on."""
    message = "load_habana_module: there is no Gaudi here and TensorFlow stays on the CPU; torch is not concerned."
    log_event(Warned(message=message))
