"""The device loop: the tutorial's classifier, one call after the other, compared with eager PyTorch and others."""

from __future__ import annotations

import torch
from torch import Tensor

import pilotage
from benchmarks.baselines import COMPILE_MODES, baselines
from benchmarks.comparison import Contender, alternate, repeated
from benchmarks.report import Row, Table
from examples.fashion_mnist.model import GarmentClassifier

BATCH = 16
STEPS = 200


def measure(device: str, rounds: int) -> Table:
    """Steps per second by tier, device iterations and precision."""
    torch.manual_seed(0)
    model, batch = GarmentClassifier().train(), (torch.randn(BATCH, 1, 28, 28), torch.randint(0, 10, (BATCH,)))
    # Autotuning only pays on a card.
    modes = (*COMPILE_MODES, "max-autotune") if device == "cuda" else COMPILE_MODES
    with Tf32(True):
        others = baselines(model, batch, _fused(device), device, modes=modes)
        fused = {name: repeated(step, STEPS, device) for name, step in others.items()}
        ours = {
            f"Pilotage, {tier}, deviceIterations {iterations}": _ours(batch, device, tier, iterations)
            for tier in ("graph", "compiled")
            for iterations in (1, 50)
        }
        contenders = [Contender(name, run) for name, run in {**fused, **ours}.items()]
        alternate(contenders, rounds)
    strict: list[Contender] = []
    if device == "cuda":
        with Tf32(False):
            strict = [
                Contender(
                    "Pilotage, compiled, deviceIterations 50, strict float32", _ours(batch, device, "compiled", 50)
                )
            ]
            alternate(strict, rounds)
    return _table([*contenders, *strict], device)


def _table(contenders: list[Contender], device: str) -> Table:
    median = {each.name: each.median for each in contenders}
    eager = median["eager PyTorch"]
    best_compile = max(value for name, value in median.items() if name.startswith("torch.compile"))
    ours = median["Pilotage, compiled, deviceIterations 50"]
    precision = "float32 with TF32 allowed, " if device == "cuda" else ""
    return Table(
        title=f"Device loop: tutorial classifier, batch {BATCH}, {precision}SGD with momentum, on {device}",
        command=f"make bench DEVICE={device} ARGS='--only device_loop'",
        rows=[Row(name, value, "steps/s", value / eager) for name, value in median.items()],
        verdict=f"{ours / eager:.1f} times eager PyTorch, {ours / best_compile:.1f} times the best of torch.compile.",
        details={"rates": {each.name: each.rates for each in contenders}},
    )


class Tf32:
    """Allows or forbids TF32 for float32 products within a block."""

    def __init__(self, allowed: bool) -> None:
        self._allowed = allowed

    def __enter__(self) -> None:
        self._before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
        torch.set_float32_matmul_precision("high" if self._allowed else "highest")
        torch.backends.cudnn.allow_tf32 = self._allowed

    def __exit__(self, *_: object) -> None:
        torch.set_float32_matmul_precision(self._before[0])
        torch.backends.cudnn.allow_tf32 = self._before[1]


def _fused(device: str):
    return lambda parameters: torch.optim.SGD(parameters, lr=0.001, momentum=0.9, fused=device == "cuda")


def _ours(batch: tuple[Tensor, ...], device: str, tier: str, iterations: int):
    torch.manual_seed(0)
    model = GarmentClassifier().train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    trainer = pilotage.training(model, optimizer, device_iterations=iterations, backend=device, tier=tier)
    images, labels = (tensor.repeat(iterations, *[1] * (tensor.dim() - 1)) for tensor in batch)
    return repeated(lambda: trainer(images, labels), max(STEPS // iterations, 8), device, steps=iterations)
