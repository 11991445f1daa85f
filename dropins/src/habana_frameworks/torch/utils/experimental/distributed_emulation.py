"""Training of one rank without its peers, which the emulation does not have."""

from __future__ import annotations

import os

from habana_frameworks._emulation.refusals import refusing


def is_distributed_emulation_enabled() -> bool:
    """Whether PT_HPU_EMULATE_DISTRIBUTED asks for it."""
    return os.environ.get("PT_HPU_EMULATE_DISTRIBUTED") == "1"


def distributed_emulation_apply_if_enabled() -> None:
    """Raise an error if PT_HPU_EMULATE_DISTRIBUTED=1 asks for it: without collectives, results are wrong."""
    if is_distributed_emulation_enabled():
        refusing(
            "distributed_emulation",
            "PT_HPU_EMULATE_DISTRIBUTED=1 skips collectives. Start all processes with torchrun.",
        )()
