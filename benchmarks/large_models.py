"""Models whose time goes into large products: ResNet-50 and a transformer encoder of twelve layers, in bfloat16."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

import pilotage
from benchmarks.contest import Contender, synchronized, take_turns
from benchmarks.peers import MakeOptimizer, peers
from benchmarks.report import Row, Table

STEPS = 10


class WithLoss(nn.Module):
    """A model that returns its loss."""

    def __init__(self, model: nn.Module, loss) -> None:
        super().__init__()
        self.model = model
        self.loss = loss

    def forward(self, inputs: Tensor, target: Tensor) -> Tensor:
        """The loss against the target."""
        return self.loss(self.model(inputs), target)


def encoder(layers: int = 12) -> nn.Module:
    """An encoder of the size of BERT base."""
    layer = nn.TransformerEncoderLayer(768, 12, 3072, activation="gelu", batch_first=True, norm_first=True)
    return WithLoss(nn.TransformerEncoder(layer, layers, enable_nested_tensor=False), functional.mse_loss)


def measure(device: str, rounds: int) -> Table:
    """Steps per second of each model against the better of eager PyTorch and torch.compile."""
    rows: list[Row] = []
    verdicts: list[str] = []
    for title, model, batch, optimizer, layouts in _subjects(device):
        contenders = [Contender(name, run) for name, run in _contenders(model, batch, optimizer, layouts, device)]
        take_turns(contenders, min(rounds, 5))
        peer = max(each.median for each in contenders if not each.name.startswith("Pilotage"))
        ours = max(each.median for each in contenders if each.name.startswith("Pilotage"))
        rows += [Row(f"{title}: {each.name}", each.median, "steps/s", each.median / peer) for each in contenders]
        verdicts.append(f"{title}: {ours / peer:.2f} times the best peer.")
    return Table(
        title=f"Large models, bfloat16, training steps, on {device}",
        command=f"make bench DEVICE={device} ARGS='--only large_models'",
        rows=rows,
        verdict="\n".join(verdicts),
    )


def _subjects(
    device: str,
) -> Iterator[tuple[str, nn.Module, tuple[Tensor, ...], MakeOptimizer, tuple[torch.memory_format, ...]]]:
    torch.manual_seed(0)
    fused = device == "cuda"
    signals = torch.randn(8, 512, 768, dtype=torch.bfloat16)
    yield (
        "encoder, 12 layers, batch 8 x 512",
        encoder().bfloat16(),
        (signals, torch.randn_like(signals)),
        lambda parameters: torch.optim.AdamW(parameters, lr=1e-4, fused=fused),
        (torch.contiguous_format,),
    )
    if importlib.util.find_spec("torchvision") is None:
        return
    from torchvision.models import resnet50

    yield (
        "ResNet-50, batch 32",
        WithLoss(resnet50(), functional.cross_entropy).bfloat16(),
        (torch.randn(32, 3, 224, 224, dtype=torch.bfloat16), torch.randint(0, 1000, (32,))),
        lambda parameters: torch.optim.SGD(parameters, lr=0.001, momentum=0.9, fused=fused),
        (torch.contiguous_format, torch.channels_last),
    )


def _contenders(model, batch, optimizer: MakeOptimizer, layouts, device: str):
    for name, step in peers(model, batch, optimizer, device, modes=("reduce-overhead",), layouts=layouts).items():
        if name in ("Lightning Fabric", "Accelerate"):
            continue
        yield name, _repeated(step, device)
    trainer = pilotage.training(model, _plain(optimizer(model.parameters())), backend=device, tier="compiled")
    yield "Pilotage, compiled", _repeated(lambda: trainer(*batch), device)


def _plain(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """Ours decides for itself what to fuse."""
    for group in optimizer.param_groups:
        group["fused"] = None
    return optimizer


def _repeated(step, device: str):
    def run() -> int:
        torch.backends.cudnn.benchmark = True
        for _ in range(STEPS):
            step()
        synchronized(device)
        return STEPS

    return run
