"""The number types of each precision."""

import torch

from cosmictagger.configuration.choices import Precision
from cosmictagger.training.precision import NUMBER_TYPES


def test_only_float16_and_float64_change_the_weights():
    assert {
        kind: numbers.weights for kind, numbers in NUMBER_TYPES.items() if numbers.weights is not torch.float32
    } == {Precision.float16: torch.float16, Precision.float64: torch.float64}
    assert NUMBER_TYPES[Precision.bfloat16].activations is torch.bfloat16
    assert NUMBER_TYPES[Precision.mixed].scales_loss
