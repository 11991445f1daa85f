"""Each precision does what it says, or is refused."""

import pytest
import torch

from cosmictagger.configuration.choices import ComputeMode, ModeKind, Precision
from cosmictagger.training.precision import NUMBERS, refusal


def test_master_weights_are_float32_except_where_float16_is_all():
    assert {kind: numbers.weights for kind, numbers in NUMBERS.items() if numbers.weights is not torch.float32} == {
        Precision.float16: torch.float16
    }
    assert NUMBERS[Precision.bfloat16].activations is torch.bfloat16
    assert NUMBERS[Precision.mixed].scales_loss


@pytest.mark.parametrize(
    ("precision", "compute_mode", "mode", "refused"),
    [
        (Precision.mixed, ComputeMode.CPU, ModeKind.train, True),
        (Precision.mixed, ComputeMode.GPU, ModeKind.train, False),
        (Precision.float16, ComputeMode.GPU, ModeKind.train, True),
        (Precision.float16, ComputeMode.CPU, ModeKind.inference, False),
        (Precision.bfloat16, ComputeMode.CPU, ModeKind.train, False),
        (Precision.float32, ComputeMode.CPU, ModeKind.train, False),
    ],
)
def test_what_cannot_be_done_is_refused(precision, compute_mode, mode, refused):
    assert (refusal(precision, compute_mode, mode) is not None) is refused
