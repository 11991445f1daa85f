"""Observing the types that a network computes in."""

import torch

from cosmictagger.configuration.choices import Precision
from cosmictagger.devices.observed_precision import ObservedPrecision
from cosmictagger.training.precision import NUMBER_TYPES


def test_the_requested_types_are_accepted(small):
    net = small.network(Precision.bfloat16)
    seen = ObservedPrecision(net, NUMBER_TYPES[Precision.bfloat16])
    assert seen.precision.endswith("(not run)")
    net(torch.randn(1, 3, 8, 12))
    assert seen.precision == "bfloat16 activations, float32 weights"
    assert seen.problems == ()


def test_a_type_that_was_not_requested_is_named(small):
    net = small.network(Precision.float32)
    seen = ObservedPrecision(net, NUMBER_TYPES[Precision.float16])
    net(torch.randn(1, 3, 8, 12))
    assert seen.problems == (
        "precision: float16 activations were requested, but float32 activations were computed",
        "precision: float16 weights were requested, but float32 weights were computed",
    )
