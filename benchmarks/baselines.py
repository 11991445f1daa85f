"""Other ways of training to compare with, each as a function that does one step."""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

Step = Callable[[], object]
MakeOptimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]

COMPILE_MODES = ("default", "reduce-overhead")


def baselines(
    model: nn.Module,
    batch: tuple[Tensor, ...],
    optimizer: MakeOptimizer,
    device: str,
    *,
    modes: Iterable[str] = COMPILE_MODES,
    layouts: Iterable[torch.memory_format] = (torch.contiguous_format,),
    loops: bool = True,
) -> Mapping[str, Step]:
    """Eager PyTorch, torch.compile in several modes, and with ``loops`` Fabric and Accelerate if installed."""
    steps: dict[str, Step] = {}
    for layout in layouts:
        name = ", channels last" if layout is torch.channels_last else ""
        own = [tensor.to(device) for tensor in batch]
        if layout is torch.channels_last:
            own = [tensor.contiguous(memory_format=layout) if tensor.dim() == 4 else tensor for tensor in own]
        steps[f"eager PyTorch{name}"] = _plain(_moved(model, device, layout), own, optimizer)
        for mode in modes:
            compiled = torch.compile(_moved(model, device, layout), mode=mode, dynamic=False)
            steps[f"torch.compile, {mode}{name}"] = _plain(compiled, own, optimizer)
    if loops and importlib.util.find_spec("lightning") is not None:
        steps["Lightning Fabric"] = _fabric(copy.deepcopy(model), batch, optimizer, device)
    if loops and importlib.util.find_spec("accelerate") is not None:
        steps["Accelerate"] = _accelerate(copy.deepcopy(model), batch, optimizer, device)
    return steps


def loss_of(result: Any) -> Tensor:
    """The loss that a model returns, by itself or after its output."""
    loss: Tensor = result[-1] if isinstance(result, tuple) else result
    return loss


def _moved(model: nn.Module, device: str, layout: torch.memory_format) -> nn.Module:
    return copy.deepcopy(model).to(device).to(memory_format=layout)


def _plain(model: Any, batch: list[Tensor], make_optimizer: MakeOptimizer) -> Step:
    optimizer = make_optimizer(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        loss_of(model(*batch)).backward()
        optimizer.step()

    return step


def _fabric(model: nn.Module, batch: tuple[Tensor, ...], make_optimizer: MakeOptimizer, device: str) -> Step:
    from lightning.fabric import Fabric

    fabric = Fabric(accelerator=device, devices=1)
    wrapped, optimizer = fabric.setup(model, make_optimizer(model.parameters()))
    own = [fabric.to_device(tensor) for tensor in batch]

    def step() -> None:
        optimizer.zero_grad()
        fabric.backward(loss_of(wrapped(*own)))
        optimizer.step()

    return step


def _accelerate(model: nn.Module, batch: tuple[Tensor, ...], make_optimizer: MakeOptimizer, device: str) -> Step:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=device == "cpu")
    wrapped, optimizer = accelerator.prepare(model, make_optimizer(model.parameters()))
    own = [tensor.to(accelerator.device) for tensor in batch]

    def step() -> None:
        optimizer.zero_grad()
        accelerator.backward(loss_of(wrapped(*own)))
        optimizer.step()

    return step
