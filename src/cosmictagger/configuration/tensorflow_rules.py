"""Rules about framework=tensorflow: what it needs and what it does not have."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from cosmictagger.configuration.choices import ComputeMode, ConvMode, Precision
from cosmictagger.configuration.framework import Tensorflow
from cosmictagger.configuration.root import Configuration

INSTALL = "pip install 'pilotage[cosmic-tensorflow]'"


def tensorflow_problems(config: Configuration, framework: Tensorflow) -> Iterator[str]:
    """Refuse what framework=tensorflow cannot do."""
    if find_spec("tensorflow") is None:
        yield f"framework=tensorflow needs TensorFlow. Install it with {INSTALL}, or use framework=torch."
    run, network = config.run, config.network
    if run.compute_mode not in (ComputeMode.CPU, ComputeMode.HPU):
        yield (
            f"framework=tensorflow computes on processors, so run.compute_mode={run.compute_mode.name} is not "
            "available. Use CPU, HPU (which loads Habana's bridge), or framework=torch."
        )
    if run.precision not in (Precision.float32, Precision.bfloat16, Precision.float64):
        yield f"framework=tensorflow has no run.precision={run.precision.name}. Use float32, bfloat16 or float64."
    missing = {
        "network.conv_mode=conv_3D": network.conv_mode is ConvMode.conv_3D,
        "network.event_label=true": network.event_label,
        "network.vertex=true": network.vertex,
        "mode.quantization_aware=true": config.mode.quantization_aware,
        "run.profile=true": run.profile,
        "run.lazy_mode=true": run.lazy_mode,
    }
    for option, asked in missing.items():
        if asked:
            yield f"{option} needs framework=torch. Omit it, or use framework=torch."
    for name in ("inter_op_parallelism_threads", "intra_op_parallelism_threads"):
        if (threads := getattr(framework, name)) < 0:
            yield f"framework.{name} is {threads}. It must be at least 0."
