import gc

import torch
from torch import nn
from torch.nn import functional

from pilotage.prediction.capturing.program import captured_for
from pilotage.prediction.trace.graphs import traced_steps


class Attention(nn.Module):
    """Attention with dropout."""

    def __init__(self):
        super().__init__()
        self.into = nn.Linear(32, 96)

    def forward(self, x, mask=None):
        q, k, v = self.into(x).view(2, 8, 3, 4, 8).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return functional.dropout(mixed, 0.1).sum()


def names(subject, kind):
    (step,) = traced_steps(captured_for(subject, kind)).values()
    return {each.name for each in step.operations}


def test_a_card_has_fused_attention_and_dropout(subject_of):
    found = names(subject_of(Attention(), [torch.zeros(2, 8, 32)]), "card")
    assert "aten._scaled_dot_product_efficient_attention" in found
    assert "aten.native_dropout" in found
    half = Attention().bfloat16()
    found = names(subject_of(half, [torch.zeros(2, 8, 32, dtype=torch.bfloat16)]), "card")
    assert "aten._scaled_dot_product_flash_attention_backward" in found


def test_a_mask_is_part_of_fused_attention(subject_of):
    inputs = [torch.zeros(2, 8, 32), torch.ones(8, 8, dtype=torch.bool)]
    assert "aten._scaled_dot_product_efficient_attention" in names(subject_of(Attention(), inputs), "card")


def test_a_recurrent_network_is_captured_as_on_a_card(subject_of):
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(8, 8)

        def forward(self, x):
            return self.lstm(x)[0].sum()

    found = names(subject_of(Recurrent(), [torch.zeros(3, 2, 8)]), "card")
    assert "aten.sigmoid" in found


def test_torch_is_as_before_afterwards(subject_of):
    before = torch.backends.cudnn.is_acceptable
    captured_for(subject_of(), "card")
    assert torch.backends.cudnn.is_acceptable is before


def test_python_does_not_look_for_garbage_during_a_capture(subject_of):
    seen = []

    class Looking(nn.Linear):
        def forward(self, x):
            seen.append(gc.isenabled())
            return super().forward(x).sum()

    captured_for(subject_of(Looking(4, 4), [torch.zeros(2, 4)]), "ipu")
    assert seen == [False]
    assert gc.isenabled()
