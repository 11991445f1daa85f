"""All rewrites at once, in a network that has something for each of them: its compiled training step on a card, against eager."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional

import pilotage
from pilotage.backends.native.rewrites import for_card
from pilotage.backends.native.rewrites.for_card import rewrite_for_card
from pilotage.backends.native.shared_numbers import TO_MEMORY

aten, prims = torch.ops.aten, torch.ops.prims
STEPS = 4


class Pictures(nn.Module):
    """A convolution of three channels at stride two, normalisations, ReLU, and pooling whose windows overlap."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 16, 7, stride=2, padding=3, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
            nn.Conv2d(16, 16, 3, padding=1, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU(),
        )
        self.last = nn.Linear(16, 5)

    def forward(self, pictures, classes):
        return functional.cross_entropy(self.last(self.stem(pictures).mean((2, 3))), classes)


def counted_and_normalised(count, other, picture, mean, inverse, weight, bias):
    result = prims.convert_element_type(((picture - mean) * inverse) * weight + bias, torch.bfloat16).relu()
    return count + 1, other + 1, result, aten.le.Scalar(result, 0), picture + 1


def test_every_pass_is_made(monkeypatch):
    seen = []
    for name in ("fold_few_channels", "spread_by_offsets", "separate_large"):
        monkeypatch.setattr(for_card, name, lambda *arguments, name=name: seen.append(name))
    numbers = [torch.rand(1, 4, 1, 1) for _ in range(4)]
    given = [torch.tensor(1), torch.tensor(2), torch.randn(2, 4, 8, 8).bfloat16(), *numbers]
    graph = make_fx(counted_and_normalised, tracing_mode="fake")(*given)
    rewrite_for_card(graph, torch.device("cpu"))
    assert sorted(seen) == ["fold_few_channels", "separate_large", "spread_by_offsets"]
    nodes = list(graph.graph.nodes)
    assert any(node.target is aten._foreach_add.Scalar for node in nodes)
    assert any(node.meta.get(TO_MEMORY) for node in nodes)
    (mask,) = (node for node in nodes if node.target is aten.le.Scalar)
    assert mask.args[0].target is prims.convert_element_type.default
    for found, expected in zip(graph(*given), counted_and_normalised(*given), strict=True):
        torch.testing.assert_close(found, expected)


@pytest.mark.slow
@pytest.mark.skipif(not torch.cuda.is_available(), reason="There is no CUDA device.")
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.bfloat16, 2e-2)])
def test_a_rewritten_step_trains_as_eager_does(tmp_path, dtype, tolerance):
    torch.manual_seed(0)
    model = Pictures().to(dtype)
    pictures, classes = torch.randn(16, 3, 64, 64, dtype=dtype), torch.randint(0, 5, (16,))
    eager = copy.deepcopy(model).cuda()
    optimizer = torch.optim.SGD(eager.parameters(), lr=0.05, momentum=0.9)
    expected = []
    for _ in range(STEPS):
        loss = eager(pictures.cuda(), classes.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        expected.append(float(loss.detach()))
    trainer = pilotage.training(
        model,
        torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9),
        backend="cuda",
        tier="compiled",
        cache_directory=tmp_path,
    )
    losses = [float(trainer(pictures, classes).detach()) for _ in range(STEPS)]
    assert trainer.record.latest_tier == "compiled"
    assert losses == pytest.approx(expected, rel=tolerance)
    for name, found in model.state_dict().items():
        reference = eager.state_dict()[name].cpu()
        torch.testing.assert_close(found, reference, rtol=tolerance, atol=3 * tolerance, msg=name)
