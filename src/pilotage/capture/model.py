"""Runs the user's module on given tensors instead of its own parameters and buffers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from pilotage.capture.constant_outputs import DataFlow
from pilotage.capture.kept_memory import KeptMemory
from pilotage.capture.loss.dropped_work import DroppedWork
from pilotage.capture.module_state import ModuleTables, replaced
from pilotage.errors import BufferBroadcastError, CaptureError
from pilotage.program.graphs.origins import enter_stage
from pilotage.program.layout import StateLayout
from pilotage.program.program import Program
from pilotage.program.specification import TensorSpec
from pilotage.program.structure import Parsers, Structure, flatten, unflatten
from pilotage.torch_private import PARAMETER_MARK, backward_hooks, post_accumulate_grad_hooks, storage_address

_forward_is_running: ContextVar[bool] = ContextVar("pilotage_forward_is_running", default=False)


def forward_is_running() -> bool:
    """Whether the engine is running a module's forward right now."""
    return _forward_is_running.get()


@contextmanager
def running_forward() -> Iterator[None]:
    """Tell user code in the block that the engine is running forward."""
    token = _forward_is_running.set(True)
    enter_stage(None)
    try:
        yield
    finally:
        _forward_is_running.reset(token)
        enter_stage(None)


@dataclass(kw_only=True)
class Findings:
    """What a run of forward showed about the module."""

    outputs: Structure | None = None
    without_gradient: tuple[str, ...] = ()
    """Trained parameters that the loss does not depend on; eager optimizers skip them too."""

    reassigned_buffers: tuple[str, ...] = ()

    constant_outputs: tuple[int, ...] = ()
    """Outputs that are the same in every run, if data flow was tracked."""

    dropped_work: DroppedWork | None = None
    """An output computed from the loss by work that does not affect the gradients; only under `LossRule.CALLED`."""


def findings_of(program: Program) -> Iterator[Findings]:
    """What runs of forward have shown, for each step of a program that was not loaded from a file."""
    functions = (computation.function for computation in program.computations.values())
    found = (function.findings for function in functions if function is not None)
    return (each for each in found if isinstance(each, Findings))


@dataclass(frozen=True, kw_only=True)
class Model:
    """A module with everything needed to call it on flat lists of tensors."""

    module: nn.Module
    arguments: Structure
    """The structure of the pair (positional arguments, keyword arguments)."""

    layout: StateLayout
    modes: Mapping[nn.Module, bool]
    """Which submodules are in training mode."""

    equal_buffers: bool = False
    """Whether to check that forward does not change its buffers; only for runs on real data."""

    follows_data: bool = False
    """Whether to find constant outputs in the first run; only for runs on real data."""

    parsers: Parsers = field(default_factory=dict)
    findings: Findings = field(default_factory=Findings)

    @contextmanager
    def using(self, parameters: Sequence[Tensor], buffers: Sequence[Tensor]) -> Iterator[dict[str, Tensor]]:
        """Let the module use these tensors; yields its parameters as autograd leaves."""
        leaves = {
            name: tensor.detach().requires_grad_(name in self.layout.trained)
            for name, tensor in zip(self.layout.parameters, parameters, strict=True)
        }
        for leaf in leaves.values():
            # For isinstance: forward may assign a parameter to itself, as in ``self.p = self.p.to(x.device)``.
            setattr(leaf, PARAMETER_MARK, True)
        self._hook_up(leaves)
        held = dict(zip(self.layout.buffers, buffers, strict=True))
        before = {name: buffer.clone() for name, buffer in held.items()} if self.equal_buffers else {}
        tables, instead = ModuleTables(self.module), self._instead({**leaves, **held})
        state = {f"Parameter {name}": leaf for name, leaf in leaves.items()}
        state |= {f"Buffer {name}": buffer for name, buffer in held.items()}
        try:
            with _in_modes(self.modes):
                tables.put(instead)
                with KeptMemory(instead, state) as memory:
                    yield leaves
                memory.refuse_exchanges()
                tables.refuse_growth_and_loss()
                self._refuse_replaced_parameters(leaves)
                self._write_back_reassigned(held)
                refuse_unequal_buffers(name for name in before if not torch.equal(held[name], before[name]))
        finally:
            tables.restore()

    def call(self, inputs: Sequence[Tensor]) -> Any:
        """Run forward on a micro-batch; only inside `using`."""
        positional, named = unflatten(self.arguments, inputs)
        with running_forward():
            if not self.follows_data or self.findings.outputs is not None:
                return self.module(*positional, **named)
            with DataFlow([*self.module.parameters(), *self.module.buffers(), *inputs]) as flow:
                value = self.module(*positional, **named)
            self.findings.constant_outputs = self._constants(value, flow)
            return value

    def _constants(self, value: Any, flow: DataFlow) -> tuple[int, ...]:
        tensors, _ = flatten(value, self.parsers)
        return tuple(position for position, tensor in enumerate(tensors) if not flow.varies(tensor))

    def outputs_of(self, value: Any, state: Sequence[Tensor]) -> list[Tensor]:
        """The tensors that forward returned, as copies where they share memory with the state."""
        tensors, self.findings.outputs = flatten(value, self.parsers)
        _refuse_sparse(tensors)
        storages = {storage_address(tensor.untyped_storage()) for tensor in state}
        return [_apart(tensor.detach(), storages) for tensor in tensors]

    def _instead(self, tensors: Mapping[str, Tensor]) -> dict[int, Tensor]:
        own = {**dict(self.module.named_parameters()), **dict(self.module.named_buffers())}
        return {id(own[name]): tensor for name, tensor in tensors.items()}

    def _hook_up(self, leaves: Mapping[str, Tensor]) -> None:
        """Register the gradient hooks of the module's parameters on the leaves."""
        own = dict(self.module.named_parameters())
        for name in self.layout.trained:
            for hook in (backward_hooks(own[name]) or {}).values():
                leaves[name].register_hook(hook)
            if post_accumulate_grad_hooks(own[name]):
                raise CaptureError(
                    f"The parameter {name} has a hook that runs after its .grad is accumulated, but a program has no "
                    ".grad. Use register_hook, which changes the gradient itself, or leave updates to the optimizer."
                )

    @torch.no_grad()
    def _write_back_reassigned(self, held: Mapping[str, Tensor]) -> None:
        """Copy buffers that forward reassigned into the tensors of the state."""
        reassigned = dict(replaced(self.module, held))
        for name, new in reassigned.items():
            old = held[name]
            if new.shape != old.shape or new.dtype != old.dtype:
                raise CaptureError(
                    f"Buffer {name} is reassigned within the model when calling the forward method. This is not "
                    f"supported. Consider using self.{name.rpartition('.')[2]}.copy_(src) to copy data from a source "
                    "tensor, where src is the name of the source tensor. The program keeps its state in tensors of "
                    f"fixed shape and type, and forward replaces {TensorSpec.of(old)} by {TensorSpec.of(new)}: "
                    "register "
                    "the buffer with its final shape and type."
                )
            old.copy_(new.detach())
        self.findings.reassigned_buffers = tuple(reassigned)

    def _refuse_replaced_parameters(self, leaves: Mapping[str, Tensor]) -> None:
        for name, _ in replaced(self.module, leaves):
            raise CaptureError(
                f"Parameter {name} is reassigned within the model when calling the forward method. This is not "
                "supported: the optimizer does not know the new one. Consider using copy_(src) under torch.no_grad(), "
                "or compute the new value without assigning it."
            )


def refuse_unequal_buffers(written: Iterable[str]) -> None:
    """Raise if forward writes to a buffer that must be equal in all replicas."""
    for name in written:
        raise BufferBroadcastError(
            f"forward writes to the buffer {name!r}, and each replica would get its own value. "
            "Set broadcast_buffers to False if that is acceptable."
        )


def _refuse_sparse(outputs: Iterable[Tensor]) -> None:
    for tensor in outputs:
        if tensor.layout is not torch.strided:
            raise CaptureError(
                f"forward returns a tensor with the layout {tensor.layout}, but a program returns only dense tensors. "
                "Return it as to_dense(), or return its indices and values."
            )


def modes_of(module: nn.Module) -> dict[nn.Module, bool]:
    """Which submodules are currently in training mode."""
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
    return tensor.clone() if storage_address(tensor.untyped_storage()) in storages else tensor
