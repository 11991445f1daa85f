"""Transformers with a mask."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pilotage
from pilotage.capture.functions.patched_modules import patched_modules

pytestmark = pytest.mark.slow

CAUSAL = nn.Transformer.generate_square_subsequent_mask(5)
OTHER = torch.eye(5) * -2
BATCH = torch.arange(80.0).reshape(2, 5, 8).sin()


def encoder():
    layer = nn.TransformerEncoderLayer(8, nhead=2, dim_feedforward=16, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)


def decoder():
    layer = nn.TransformerDecoderLayer(8, nhead=2, dim_feedforward=16, dropout=0.0, batch_first=True)
    return nn.TransformerDecoder(layer, num_layers=1)


CALLS = {
    "mask": (encoder, lambda module, x, mask: module(x, mask)),
    "named mask": (encoder, lambda module, x, mask: module(x, mask=mask)),
    "padding": (
        encoder,
        lambda module, x, mask: module(x, src_key_padding_mask=torch.tensor([[False] * 4 + [True]] * 2)),
    ),
    "hint": (encoder, lambda module, x, mask: module(x, mask, None, False)),
    "decoder": (decoder, lambda module, x, mask: module(x, x.flip(1), mask)),
    "decoder, named mask": (decoder, lambda module, x, mask: module(x, x.flip(1), tgt_mask=mask)),
}


class Calling(nn.Module):
    def __init__(self, make, call) -> None:
        super().__init__()
        self.module, self.call = make(), call

    def forward(self, x, mask):
        return pilotage.mark_loss(self.call(self.module, x, mask).square().mean())


@pytest.mark.parametrize("mask", [CAUSAL, OTHER], ids=["causal", "other"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("trains", [True, False])
def test_results_equal_eager(call, mask, trains, twins, assert_same_state, assert_equal):
    mine, theirs = twins(lambda: Calling(*call))
    if not trains:
        assert_equal(pilotage.inference(mine.eval())(BATCH, mask), theirs.eval()(BATCH, mask).detach(), 1e-5)
        return
    step = pilotage.training(mine, torch.optim.SGD(mine.parameters(), lr=0.1))
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.1)
    wanted = theirs(BATCH, mask)
    wanted.backward()
    optimizer.step()
    assert_equal(step(BATCH, mask), wanted.detach(), 1e-5)
    assert_same_state(mine, theirs, 1e-5)


def test_an_explicit_causal_hint_is_used(assert_equal):
    module = encoder().eval()
    calling = nn.Module()
    calling.module = module
    calling.forward = lambda x, mask: module(x, mask, is_causal=True)
    assert_equal(pilotage.inference(calling)(BATCH, CAUSAL), module(BATCH, CAUSAL, is_causal=True).detach(), 1e-5)


def test_all_hooks_are_removed():
    module = nn.ModuleList([encoder(), decoder(), nn.ReLU()])
    with patched_modules(module):
        assert [len(part._forward_pre_hooks) for part in module] == [1, 1, 0]
    assert not any(part._forward_pre_hooks for part in module)
