"""Loads an executable and, if possible, runs it once."""

from __future__ import annotations

from pathlib import Path

import torch

import poptorch
from pilotage.program.structure import unflatten

MEMORY = 256 << 20
"""The memory limit for a program."""

torch.set_num_threads(1)


def load_and_run(path: Path) -> str:
    """Load an untrusted file, and call it once with inputs of its declared shapes."""
    poptorch.setLogLevel("OFF")
    model = poptorch.load(path, _on_the_processor, max_memory=MEMORY)
    session = model.engine.session
    program, parts = session.program, session.schedule.micro_batches
    tensors = [
        torch.ones((spec.shape[0] * parts, *spec.shape[1:]) if spec.shape else (), dtype=spec.dtype)
        for spec in program.inputs
    ]
    if sum(tensor.numel() * tensor.element_size() for tensor in tensors) > MEMORY:
        return "loaded"
    arguments, keywords = unflatten(program.arguments, tensors)
    try:
        model(*arguments, **keywords)
    except Exception as error:
        return f"stopped: {type(error).__name__}: {error}"
    return "run"


def _on_the_processor(options: poptorch.Options) -> None:
    options.runOn("cpu", tier="graph", nonfinite_loss="ignore")
    options.showCompilationProgressBar(False)
