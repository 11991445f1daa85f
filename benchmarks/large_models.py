"""Models dominated by large matrix products: ResNet-50 and a 12-layer transformer encoder, in bfloat16."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

import pilotage
from benchmarks.baselines import MakeOptimizer, baselines
from benchmarks.comparison import alternate, repeated
from benchmarks.report import Row, Table
from benchmarks.separate_processes import in_processes

STEPS = 20
_ENCODER, _RESNET = "encoder, 12 layers, batch 8 x 512", "ResNet-50, batch 32"
_LAYOUT = ", channels last"
_BASELINES = {
    _ENCODER: ("eager PyTorch", "torch.compile, reduce-overhead"),
    _RESNET: tuple(
        f"{way}{layout}" for way in ("eager PyTorch", "torch.compile, reduce-overhead") for layout in ("", _LAYOUT)
    ),
}
_OURS = {"Pilotage, compiled, deviceIterations 1": 1, "Pilotage, compiled, deviceIterations 10": 10}
"""Pilotage's ways of training, with their device iterations. All contenders have their batches on the device."""


class WithLoss(nn.Module):
    """A model that returns its loss."""

    def __init__(self, model: nn.Module, loss) -> None:
        super().__init__()
        self.model = model
        self.loss = loss

    def forward(self, inputs: Tensor, target: Tensor) -> Tensor:
        """The loss for a target."""
        return self.loss(self.model(inputs), target)


def encoder(layers: int = 12) -> nn.Module:
    """An encoder of the size of BERT base."""
    layer = nn.TransformerEncoderLayer(768, 12, 3072, activation="gelu", batch_first=True, norm_first=True)
    return WithLoss(nn.TransformerEncoder(layer, layers, enable_nested_tensor=False), functional.mse_loss)


def measure(device: str, rounds: int) -> Table:
    """Steps per second of each model, compared with the better of eager PyTorch and torch.compile."""
    names = {subject: [f"{subject}: {way}" for way in (*_BASELINES[subject], *_OURS)] for subject in _subjects()}
    with in_processes(
        "benchmarks.large_models", [name for each in names.values() for name in each], device
    ) as contenders:
        alternate(contenders, max(rounds, 5))
    median = {each.name: each.median for each in contenders}
    rows: list[Row] = []
    verdicts: list[str] = []
    for subject in names:
        baseline = max(median[f"{subject}: {way}"] for way in _BASELINES[subject])
        ours = max(median[f"{subject}: {way}"] for way in _OURS)
        rows += [Row(name, median[name], "steps/s", median[name] / baseline) for name in names[subject]]
        verdicts.append(f"{subject}: {ours / baseline:.2f} times the best baseline.")
    return Table(
        title=f"Large models, bfloat16, training steps, on {device}",
        command=f"make bench DEVICE={device} ARGS='--only large_models'",
        rows=rows,
        verdict="\n".join(verdicts),
    )


def contender(name: str, device: str) -> Callable[[], int]:
    """A round of one way of training one of the models."""
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    subject, way = name.split(": ")
    model, batch, optimizer = (_encoder if subject == _ENCODER else _resnet)(device == "cuda")
    if way not in _OURS:
        layout = torch.channels_last if way.endswith(_LAYOUT) else torch.contiguous_format
        modes = ("reduce-overhead",) if way.startswith("torch.compile") else ()
        steps = baselines(model, batch, optimizer, device, modes=modes, layouts=(layout,), loops=False)
        return repeated(steps[way], STEPS, device)
    iterations = _OURS[way]
    trainer = pilotage.training(
        model, _plain(optimizer(model.parameters())), device_iterations=iterations, backend=device, tier="compiled"
    )
    inputs = [torch.cat([tensor] * iterations).to(device) for tensor in batch]
    return repeated(lambda: trainer(*inputs), STEPS // iterations, device, steps=iterations)


def _subjects() -> list[str]:
    return [_ENCODER] if importlib.util.find_spec("torchvision") is None else [_ENCODER, _RESNET]


def _encoder(fused: bool) -> tuple[nn.Module, tuple[Tensor, ...], MakeOptimizer]:
    signals = torch.randn(8, 512, 768, dtype=torch.bfloat16)
    return (
        encoder().bfloat16(),
        (signals, torch.randn_like(signals)),
        lambda parameters: torch.optim.AdamW(parameters, lr=1e-4, fused=fused),
    )


def _resnet(fused: bool) -> tuple[nn.Module, tuple[Tensor, ...], MakeOptimizer]:
    from torchvision.models import resnet50

    return (
        WithLoss(resnet50(), functional.cross_entropy).bfloat16(),
        (torch.randn(32, 3, 224, 224, dtype=torch.bfloat16), torch.randint(0, 1000, (32,))),
        lambda parameters: torch.optim.SGD(parameters, lr=0.001, momentum=0.9, fused=fused),
    )


def _plain(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """Pilotage decides itself what to fuse."""
    for group in optimizer.param_groups:
        group["fused"] = None
    return optimizer
