"""Gradients of the networks on a CPU, against float64.

The tolerance comes from the same network written plainly: torch's own batch normalisation, plane by plane, with
contiguous tensors.
"""

import os
import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

import pilotage
import poptorch
from cosmictagger.configuration.choices import LossBalanceScheme
from cosmictagger.configuration.network import PRESETS
from cosmictagger.data.downsampling import downsample_event
from cosmictagger.data.generator.event import generate_event
from cosmictagger.devices.engine import MarkedStep
from cosmictagger.devices.graphcore.model import LossInForward
from cosmictagger.networks.uresnet import UResNet, build
from cosmictagger.training.loss import BalancedLoss
from cosmictagger.training.step import TrainingStep

MOST = 2.0
"""The tolerance: this many times the plain network's distance from float64."""


@pytest.fixture
def threads(request):
    """Set the number of threads during a test."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def generated_event(downsample):
    return downsample_event(generate_event(11, 0).images, downsample).dense()


def first_event(downsample):
    """The first real event, if present, else a generated one."""
    place = Path(os.environ.get("COSMICTAGGER_REAL_FILE", ""))
    if not place.is_file():
        return generated_event(downsample)
    pytest.importorskip("h5py")
    from cosmictagger.data.larcv.event_file import EventFile

    with EventFile(place) as file:
        return downsample_event(file.event(0), downsample).dense()


def plain_loss(planes, labels):
    """The focal loss by its definition."""
    total = 0
    for scores, label in zip(planes, labels.unbind(1), strict=True):
        entropy = F.cross_entropy(scores, label.long(), reduction="none")
        weights = (1 - scores.detach().softmax(1).gather(1, label.long().unsqueeze(1))[:, 0]).square()
        total = total + (weights * entropy).sum() / weights.sum()
    return total


def gradient_of(network, loss):
    network.zero_grad()
    loss.backward()
    return joined_gradient(network)


def joined_gradient(network):
    """All gradients as one vector, without biases that normalisation cancels: theirs are zero except for rounding."""
    cancelled = {f"{name}.conv.bias" for name, module in network.named_modules() if getattr(module, "norm", None)}
    named = [(name, each.grad) for name, each in network.named_parameters() if name not in cancelled]
    return torch.cat([gradient.double().flatten() for _, gradient in named])


def plain_gradient(plain_network, options, weights, image, label, kind):
    network = UResNet(options).to(kind)
    network.load_state_dict(weights)
    # A large network in float64 would need all the memory of a small machine.
    planes = plain_network(network, options, recomputes=True)(image.to(kind))
    return gradient_of(network, plain_loss(planes, label))


def errors(plain_network, options, event, counts=(1,)):
    """Relative distances of our network and the plain one from float64, for each number of threads."""
    torch.manual_seed(0)
    ours = build(options)
    weights = {name: each.clone() for name, each in ours.state_dict().items()}
    image, label = (torch.from_numpy(each).unsqueeze(0) for each in event)
    truth = plain_gradient(plain_network, options, weights, image, label, torch.float64)
    for count in counts:
        torch.set_num_threads(count)
        plain = plain_gradient(plain_network, options, weights, image, label, torch.float32)
        ours.load_state_dict(weights)
        _, loss = TrainingStep(ours, LossBalanceScheme.focal)(image, label)
        found = gradient_of(ours, loss)
        yield tuple(float((each - truth).norm() / truth.norm()) for each in (found, plain))


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1], indirect=True)
@pytest.mark.parametrize(
    ("preset", "downsample"), [("a21", 3), pytest.param("a21", 2, marks=pytest.mark.long), ("uresnet", 3)]
)
def test_gradients_are_about_as_close_to_float64_as_those_of_the_plain_network(
    preset, downsample, threads, plain_network
):
    options = replace(
        PRESETS[preset], depth=7 - downsample, blocks_deepest_layer=2, blocks_final=min(1, PRESETS[preset].blocks_final)
    )
    ((ours, plain),) = errors(plain_network, options, generated_event(downsample))
    assert ours <= MOST * plain


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("threads", [1], indirect=True)
@pytest.mark.parametrize("downsample", [3, 2, 1])
@pytest.mark.parametrize("preset", ["a21", "uresnet"])
def test_gradients_of_whole_networks_are_about_as_close_to_float64(preset, downsample, threads, plain_network):
    # Images can be halved five times at downsample 3, and six times, as the presets do, at the others.
    options = replace(PRESETS[preset], depth=5) if downsample == 3 else PRESETS[preset]
    for ours, plain in errors(plain_network, options, first_event(downsample), counts=(1, 2)):
        assert ours <= MOST * plain


SMALL = {"depth": 3, "n_initial_filters": 4, "bottleneck_deepest": 16, "blocks_deepest_layer": 1, "blocks_per_layer": 1}
DISTANCES = {torch.float64: 1e-8, torch.float32: 5e-3}
"""Relative distances from the plain network in float64. In float32 some activations fall on the other side of a kink,
for the plain network too; the tests above hold A21 and uresnet to a few rounding errors."""

STEP = 1024.0
"""A learning rate so large that the change of a weight shows its gradient to all digits."""


def shrunk(preset):
    return replace(PRESETS[preset], **SMALL, blocks_final=min(1, PRESETS[preset].blocks_final))


def gradient_on(device, network, image, label):
    """The gradient as a device computes it: eagerly, or from one update of a program."""
    if device in ("cpu", "cuda"):
        step = TrainingStep(network.to(device), LossBalanceScheme.focal)
        return gradient_of(network, step(image.to(device), label.to(device))[1]).cpu()
    before = {name: each.detach().clone() for name, each in network.named_parameters()}
    {"program": update_by_program, "ipu": update_by_poptorch}[device](network, image, label)
    for name, each in network.named_parameters():
        each.grad = (before[name].double() - each.detach().double()).div(STEP).to(each.dtype)
    return joined_gradient(network)


def update_by_program(network, image, label):
    optimizer = torch.optim.SGD(network.parameters(), lr=STEP)
    step = MarkedStep(network, LossBalanceScheme.focal, 1)
    pilotage.training(step, optimizer, backend="cpu", tier="graph")(image, label)


def update_by_poptorch(network, image, label):
    optimizer = poptorch.optim.SGD(network.parameters(), lr=STEP)
    model = poptorch.trainingModel(LossInForward(network, 1), poptorch.Options(), optimizer)
    model(image, BalancedLoss(LossBalanceScheme.focal), label)
    model.copyWeightsToHost()
    model.destroy()


def distance_on(device, layout, preset, kind, plain_network):
    options = shrunk(preset)
    torch.manual_seed(0)
    ours = build(options, kind) if layout == "channels_last" else UResNet(options, kind)
    weights = {name: each.clone() for name, each in ours.state_dict().items()}
    image, label = (torch.from_numpy(each).unsqueeze(0) for each in generated_event(4))
    truth = plain_gradient(plain_network, options, weights, image, label, torch.float64)
    found = gradient_on(device, ours.to(kind).train(), image, label)
    return float((found - truth).norm() / truth.norm())


EVERYWHERE = [
    pytest.param(
        preset,
        device,
        layout,
        threads,
        marks=[] if (preset, device, threads) == ("a21", "program", 1) else [pytest.mark.long],
    )
    for preset in PRESETS
    for device in ("cpu", "program")
    for layout in ("channels_last", "contiguous")
    for threads in (1, 2)
]


@pytest.mark.slow
@pytest.mark.parametrize("kind", DISTANCES, ids=str)
@pytest.mark.parametrize(("preset", "device", "layout", "threads"), EVERYWHERE, indirect=["threads"])
def test_every_network_layout_and_device_has_the_gradient(preset, device, layout, threads, kind, plain_network):
    assert distance_on(device, layout, preset, kind, plain_network) <= DISTANCES[kind]


@pytest.mark.long
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA card")
@pytest.mark.parametrize("kind", DISTANCES, ids=str)
@pytest.mark.parametrize("layout", ["channels_last", "contiguous"])
@pytest.mark.parametrize("preset", PRESETS)
def test_every_network_and_layout_has_the_gradient_on_a_card(preset, layout, kind, plain_network, monkeypatch):
    """Without TF32, which rounds to three digits."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", False)
    assert distance_on("cuda", layout, preset, kind, plain_network) <= DISTANCES[kind]


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2], indirect=True)
@pytest.mark.parametrize("layout", ["channels_last", "contiguous"])
@pytest.mark.parametrize(
    "preset", [name if name == "a21" else pytest.param(name, marks=pytest.mark.long) for name in PRESETS]
)
def test_every_network_and_layout_has_the_gradient_on_an_ipu(preset, layout, threads, plain_network, monkeypatch):
    """By PopTorch's interface, as CosmicTagger uses it; an IPU has no float64."""
    monkeypatch.setenv("PILOTAGE_TIER", "graph")
    assert distance_on("ipu", layout, preset, torch.float32, plain_network) <= DISTANCES[torch.float32]


ON_A_CARD = """
import sys
import torch
import habana_frameworks.torch.core
from cosmictagger.configuration.choices import LossBalanceScheme
from cosmictagger.networks.uresnet import UResNet, build
from cosmictagger.training.step import TrainingStep

torch.set_num_threads(int(sys.argv[2]))
cases = torch.load(sys.argv[1], weights_only=False)
for case in cases:
    network = (build if case["layout"] == "channels_last" else UResNet)(case["options"], case["kind"])
    network.to(case["kind"]).load_state_dict(case["weights"])
    step = TrainingStep(network, LossBalanceScheme.focal).to("hpu")
    _, loss = step(case["image"].to("hpu"), case["label"].to("hpu"))
    loss.backward()
    case["gradients"] = {name: each.grad.cpu() for name, each in network.named_parameters()}
torch.save([case["gradients"] for case in cases], sys.argv[1])
"""


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("threads", [1, 2])
def test_every_network_and_layout_has_the_gradient_on_a_gaudi(threads, plain_network, tmp_path):
    """The emulated card, in a process of its own."""
    image, label = (torch.from_numpy(each).unsqueeze(0) for each in generated_event(4))
    cases = []
    for preset, layout, kind in product(PRESETS, ("channels_last", "contiguous"), DISTANCES):
        torch.manual_seed(0)
        options = shrunk(preset)
        weights = UResNet(options).state_dict()
        given = {"options": options, "layout": layout, "kind": kind, "weights": weights}
        cases.append({**given, "image": image, "label": label})
    path = tmp_path / "cases.pt"
    torch.save(cases, path)
    (tmp_path / "card.py").write_text(ON_A_CARD)
    command = [sys.executable, str(tmp_path / "card.py"), str(path), str(threads)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    for case, gradients in zip(cases, torch.load(path, weights_only=True), strict=True):
        options = case["options"]
        truth = plain_gradient(plain_network, options, case["weights"], image, label, torch.float64)
        network = UResNet(options).to(case["kind"])
        for name, each in network.named_parameters():
            each.grad = gradients[name]
        distance = float((joined_gradient(network) - truth).norm() / truth.norm())
        assert distance <= DISTANCES[case["kind"]], (options.name, case["layout"])
