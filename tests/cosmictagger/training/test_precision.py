"""The number types of each precision."""

import torch

from cosmictagger.configuration.choices import Precision
from cosmictagger.training.precision import NUMBER_TYPES, number_types


def test_only_float16_and_float64_change_the_weights():
    assert {
        kind: numbers.weights for kind, numbers in NUMBER_TYPES.items() if numbers.weights is not torch.float32
    } == {Precision.float16: torch.float16, Precision.float64: torch.float64}
    assert NUMBER_TYPES[Precision.bfloat16].activations is torch.bfloat16
    assert NUMBER_TYPES[Precision.mixed].scales_loss


def test_training_in_float16_keeps_float32_weights_unless_the_device_rounds_at_random():
    assert number_types(Precision.float16, trains=True) == NUMBER_TYPES[Precision.mixed]
    assert number_types(Precision.float16, trains=True, rounds_at_random=True) == NUMBER_TYPES[Precision.float16]
    assert number_types(Precision.float16, trains=False) == NUMBER_TYPES[Precision.float16]
