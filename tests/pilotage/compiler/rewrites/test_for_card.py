"""All rewrites together, in a network with something for each: its compiled training step on a card, against eager."""

from __future__ import annotations

import copy
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional

import pilotage
from pilotage.compiler.changes import ChangeFailed, Changes
from pilotage.compiler.lowerings import TO_MEMORY
from pilotage.compiler.rewrites import for_card
from pilotage.compiler.rewrites.for_card import POOLING, not_decomposed, rewrite_for_card

aten, prims = torch.ops.aten, torch.ops.prims
STEPS = 4

UPDATES = """
import sys
from pathlib import Path

import torch
from torch import nn

import pilotage
from pilotage.compiler.code import NativeCode
from pilotage.compiler.inductor import compile_graph
from pilotage.compiler.rewrites import large_tensors
from pilotage.optim.lamb import Lamb
from pilotage.program.program import Action

class Squares(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3))

    def forward(self, x, target):
        return nn.functional.mse_loss(self.layers(x), target)

OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, dampening=0.2, weight_decay=0.01),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True, weight_decay=0.02),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.9, centered=True),
    "Lamb": lambda p: Lamb(p, lr=0.02, weight_decay=0.01),
}
large_tensors.LARGE = 32
torch.manual_seed(0)
model = Squares()
options = {"backend": "cpu", "tier": "graph", "gradient_accumulation": 2}
trainer = pilotage.training(model, OPTIMIZERS[sys.argv[1]](model.parameters()), **options)
trainer(torch.randn(4, 8), torch.randn(4, 3))
session = trainer._executor.session
computation = session.program.computations[Action.UPDATE]
session.state.flat_gradients.normal_()
arguments = session.state.arguments(computation.sections, 0, whole=computation.whole)
code = Path(sys.argv[2]) / "code"
compile_graph(computation.graph, arguments, code, torch.device("cuda"))
expected, found = ([argument.clone() for argument in arguments] for _ in range(2))
computation.graph(*expected)
NativeCode(code, torch.device("cpu"))(*found)
for one, other, before in zip(found, expected, arguments, strict=True):
    torch.testing.assert_close(one, other)
print(sum(not torch.equal(one, before) for one, before in zip(found, arguments, strict=True)), "changed")
"""


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


class Wide(nn.Module):
    """Parameters large enough for their own kernel."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 512))

    def forward(self, x, target):
        return functional.mse_loss(self.layers(x), target)


def counted_and_normalised(count, other, picture, mean, inverse, weight, bias):
    result = prims.convert_element_type(((picture - mean) * inverse) * weight + bias, torch.bfloat16).relu()
    return count + 1, other + 1, result, aten.le.Scalar(result, 0), picture + 1


def test_every_rewrite_runs(monkeypatch):
    seen = []
    for name in ("convolutions with few channels", "gradients of max pooling", "large tensors apart"):
        monkeypatch.setitem(for_card.REWRITES, name, lambda *arguments, name=name: seen.append(name))
    numbers = [torch.rand(1, 4, 1, 1) for _ in range(4)]
    given = [torch.tensor(1), torch.tensor(2), torch.randn(2, 4, 8, 8).bfloat16(), *numbers]
    graph = make_fx(counted_and_normalised, tracing_mode="fake")(*given)
    changes = Changes()
    rewrite_for_card(graph, torch.device("cpu"), changes)
    assert sorted(seen) == ["convolutions with few channels", "gradients of max pooling", "large tensors apart"]
    assert changes.made == ["batch counters", "chains of arithmetic per channel", "masks of ReLU"]
    nodes = list(graph.graph.nodes)
    assert any(node.target is aten._foreach_add.Scalar for node in nodes)
    assert any(node.meta.get(TO_MEMORY) for node in nodes)
    (mask,) = (node for node in nodes if node.target is aten.le.Scalar)
    assert mask.args[0].target is prims.convert_element_type.default
    for found, expected in zip(graph(*given), counted_and_normalised(*given), strict=True):
        torch.testing.assert_close(found, expected)


def test_a_rewrite_that_is_excluded_does_not_run():
    given = [torch.tensor(1), torch.tensor(2)]
    graph = make_fx(lambda one, other: (one + 1, other + 1), tracing_mode="fake")(*given)
    changes = Changes(frozenset({"batch counters"}))
    rewrite_for_card(graph, torch.device("cpu"), changes)
    assert changes.made == []
    assert not any(node.target is aten._foreach_add.Scalar for node in graph.graph.nodes)


def broken(graph, _):
    """Leave a node that uses a later one."""
    first = next(node for node in graph.graph.nodes if node.op == "call_function")
    first.args = (list(graph.graph.nodes)[-2], 1)


def test_an_error_in_a_rewrite_names_it_even_if_only_its_result_is_wrong(monkeypatch):
    monkeypatch.setitem(for_card.REWRITES, "batch counters", broken)
    graph = make_fx(lambda one, other: (one + 1, other + 1), tracing_mode="fake")(torch.tensor(1), torch.tensor(2))
    with pytest.raises(ChangeFailed, match="batch counters") as caught:
        rewrite_for_card(graph, torch.device("cpu"))
    assert "used before it has been defined" in str(caught.value.__cause__)


@pytest.mark.parametrize(
    ("device", "excluded", "whole"), [("cuda", (), True), ("cuda", (POOLING,), False), ("cpu", (), False)]
)
def test_pooling_is_decomposed_if_nothing_replaces_its_gradient(device, excluded, whole):
    found = not_decomposed(torch.device(device), Changes(frozenset(excluded)))
    assert (aten.max_pool2d_with_indices_backward.default in found) == whole


@pytest.mark.long
@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "AdamW", "RMSprop", "Lamb"])
def test_updates_of_large_parameters_from_pooled_gradients_can_be_compiled(tmp_path, optimizer):
    command = [sys.executable, "-c", UPDATES, optimizer, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # At least four parameters and their pools.
    assert int(done.stdout.split()[0]) >= 8


@pytest.mark.slow
@pytest.mark.skipif(not torch.cuda.is_available(), reason="There is no CUDA device.")
def test_large_parameters_are_trained_from_pooled_gradients_as_in_eager(tmp_path):
    torch.manual_seed(0)
    model = Wide().double()
    x, target = torch.randn(8, 512).double(), torch.randn(8, 512).double()
    eager = copy.deepcopy(model).cuda()
    optimizer = torch.optim.AdamW(eager.parameters(), lr=1e-3)
    for _ in range(STEPS):
        optimizer.zero_grad()
        for half in (slice(4), slice(4, 8)):
            (eager(x[half].cuda(), target[half].cuda()) / 2).backward()
        optimizer.step()
    trainer = pilotage.training(
        model,
        torch.optim.AdamW(model.parameters(), lr=1e-3),
        backend="cuda",
        tier="compiled",
        gradient_accumulation=2,
        cache_directory=tmp_path,
    )
    for _ in range(STEPS):
        trainer(x, target)
    assert trainer.record.latest_tier == "compiled"
    for name, found in model.state_dict().items():
        torch.testing.assert_close(found, eager.state_dict()[name].cpu(), rtol=1e-9, atol=1e-9, msg=name)


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
