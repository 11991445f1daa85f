"""Each precision does what it says, no more."""

import torch

from cosmictagger.configuration.choices import Precision
from cosmictagger.training.precision import NUMBER_TYPES


def test_master_weights_are_float32_except_where_float16_is_all():
    assert {
        kind: numbers.weights for kind, numbers in NUMBER_TYPES.items() if numbers.weights is not torch.float32
    } == {Precision.float16: torch.float16}
    assert NUMBER_TYPES[Precision.bfloat16].activations is torch.bfloat16
    assert NUMBER_TYPES[Precision.mixed].scales_loss
