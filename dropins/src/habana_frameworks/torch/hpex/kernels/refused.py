"""Kernels that the emulation does not have."""

from __future__ import annotations

from habana_frameworks._emulation.refusals import refusing

fp8_fused_sdpa = refusing("fp8_fused_sdpa", "attention in float8 depends on the card's rounding. Use FusedSDPA.")


class RandomSeed:
    """Not available."""

    random_seed = staticmethod(
        refusing("RandomSeed.random_seed", "seeds are torch's own here. Use torch.hpu.manual_seed.")
    )


class EmbeddingBag:
    """Not available."""

    forward = staticmethod(refusing("EmbeddingBag", "it needs the card's preprocessing. Use torch.nn.EmbeddingBag."))
    backward = forward


class EmbeddingBagPreproc:
    """Not available."""

    forward = staticmethod(
        refusing("EmbeddingBagPreproc", "it prepares tables for the card. Use torch.nn.EmbeddingBag.")
    )
