"""Starting TensorFlow: its threads, repeatable operations, and Habana's bridge."""

from __future__ import annotations

import tensorflow as tf

from cosmictagger.configuration.framework import Tensorflow
from cosmictagger.errors import DeviceError


def start_runtime(framework: Tensorflow, threads: int, *, loads_habana: bool = False) -> tuple[str, ...]:
    """Prepare TensorFlow for a run; returns what was requested and is not available."""
    problems = _load_habana() if loads_habana else ()
    _set_threads(framework, threads)
    # A resumed run equals an unbroken one only if sums are always added in the same order.
    tf.config.experimental.enable_op_determinism()
    return problems


def _load_habana() -> tuple[str, ...]:
    """Register Gaudi with TensorFlow; our drop-in reports that it finds none, and the run continues."""
    try:
        from habana_frameworks.tensorflow import load_habana_module
    except ImportError as error:
        raise DeviceError(f"run.compute_mode=HPU is not available: {error}") from None
    load_habana_module()
    if tf.config.list_physical_devices("HPU"):
        return ()
    return ("run.compute_mode=HPU: TensorFlow has no Gaudi here, so it computed on the CPU",)


def _set_threads(framework: Tensorflow, threads: int) -> None:
    """Set the sizes of TensorFlow's thread pools; 0 leaves them to TensorFlow."""
    inside, beside = framework.intra_op_parallelism_threads or threads, framework.inter_op_parallelism_threads
    try:
        if inside:
            tf.config.threading.set_intra_op_parallelism_threads(inside)
        if beside:
            tf.config.threading.set_inter_op_parallelism_threads(beside)
    except RuntimeError:
        raise DeviceError(
            "TensorFlow has already started with other numbers of threads: it reads framework.*_parallelism_threads "
            "and run.threads once in a process. Use a new process."
        ) from None
