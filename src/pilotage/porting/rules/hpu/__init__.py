"""Rules for Gaudi: the device, its imports and mode, marks between steps, hccl, and TensorFlow's module."""

from __future__ import annotations

from pilotage.porting.rule import Rule
from pilotage.porting.rules.hpu import (
    autocast,
    compiling,
    compute_modes,
    data_parallel,
    device,
    distributed,
    imports,
    mark_step,
    names,
    null_context,
    placement,
    requirements,
    tensorflow,
    unsupported,
)

__all__ = ["HPU_RULES"]

HPU_RULES: tuple[Rule, ...] = (
    compute_modes.RULE,
    device.RULE,
    names.RULE,
    placement.RULE,
    autocast.RULE,
    mark_step.RULE,
    distributed.RULE,
    data_parallel.RULE,
    compiling.RULE,
    null_context.RULE,
    tensorflow.RULE,
    unsupported.RULE,
    requirements.RULE,
    imports.RULE,
)
"""All of them; the imports come last, because they follow from what the others have edited."""
