"""The user's module, run on tensors that are handed in instead of on its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import stateless

from pilotage.program.layout import StateLayout
from pilotage.program.structure import Parsers, Structure, put_together, take_apart

_forward_is_running: ContextVar[bool] = ContextVar("pilotage_forward_is_running", default=False)


def forward_is_running() -> bool:
    """Whether the engine is running a module's forward right now."""
    return _forward_is_running.get()


@dataclass(kw_only=True)
class Findings:
    """What a run of forward has taught about the module."""

    outputs: Structure | None = None
    without_gradient: tuple[str, ...] = ()
    """Trained parameters that the loss does not depend on; eager optimizers skip them too."""

    reassigned_buffers: tuple[str, ...] = ()
    removed_state: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Model:
    """A module with everything that is needed to call it on flat lists of tensors."""

    module: nn.Module
    arguments: Structure
    """Of the pair (positional arguments, keyword arguments)."""

    layout: StateLayout
    modes: Mapping[nn.Module, bool]
    """Which parts of the module are in training mode."""

    parsers: Parsers = field(default_factory=dict)
    findings: Findings = field(default_factory=Findings)

    @contextmanager
    def holding(self, parameters: Sequence[Tensor], buffers: Sequence[Tensor]) -> Iterator[dict[str, Tensor]]:
        """Let the module use these tensors; yields the parameters as leaves to differentiate by."""
        leaves = {
            name: tensor.detach().requires_grad_(name in self.layout.trained)
            for name, tensor in zip(self.layout.parameters, parameters, strict=True)
        }
        held = dict(zip(self.layout.buffers, buffers, strict=True))
        with _in_modes(self.modes), stateless._reparametrize_module(self.module, {**leaves, **held}, tie_weights=True):
            yield leaves
            self._carry_over(held)

    def call(self, inputs: Sequence[Tensor]) -> Any:
        """Run forward on a micro-batch; only inside of `holding`."""
        positional, named = put_together(self.arguments, inputs)
        token = _forward_is_running.set(True)
        try:
            return self.module(*positional, **named)
        finally:
            _forward_is_running.reset(token)

    def keep(self, value: Any, state: Sequence[Tensor]) -> list[Tensor]:
        """The tensors that forward returned, apart from any state that may change under them."""
        tensors, self.findings.outputs = take_apart(value, self.parsers)
        storages = {tensor.untyped_storage()._cdata for tensor in state}
        return [_apart(tensor.detach(), storages) for tensor in tensors]

    @torch.no_grad()
    def _carry_over(self, held: Mapping[str, Tensor]) -> None:
        """Write buffers that forward replaced by new tensors into the ones that stay."""
        now = dict(self.module.named_buffers())
        self.findings.removed_state = tuple(name for name in held if name not in now)
        reassigned = [name for name, buffer in held.items() if name in now and now[name] is not buffer]
        for name in reassigned:
            held[name].copy_(now[name].detach())
        self.findings.reassigned_buffers = tuple(reassigned)


def modes_of(module: nn.Module) -> dict[nn.Module, bool]:
    """Which parts of a module are in training mode right now."""
    return {part: part.training for part in module.modules()}


@contextmanager
def _in_modes(modes: Mapping[nn.Module, bool]) -> Iterator[None]:
    before = {part: part.training for part in modes}
    _set_modes(modes)
    try:
        yield
    finally:
        _set_modes(before)


def _set_modes(modes: Mapping[nn.Module, bool]) -> None:
    for part, training in modes.items():
        if part.training != training:
            part.training = training


def _apart(tensor: Tensor, storages: set[int]) -> Tensor:
    return tensor.clone() if tensor.untyped_storage()._cdata in storages else tensor
