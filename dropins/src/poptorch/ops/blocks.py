"""Blocks: the parts of a model that an execution strategy places on IPUs.

While a model is compiled, entering a block is recorded and checked. Under ``poprun --ipus-per-replica`` each process
then runs the blocks of one IPU; otherwise one process runs all of them, on one device or spread over its cards.
Outside of compilations blocks do nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from torch import nn

from pilotage.engine import forward_pre_hooks
from poptorch._capture.capturing import current_run
from poptorch._errors import createPoptorchError

__all__ = ["BeginBlock", "Block", "BlockFunction", "LegacyBeginBlockFn", "removeBlocks"]

P = ParamSpec("P")
R = TypeVar("R")


class Block(nn.Module):
    """Everything that runs in ``with Block(...):`` belongs to one block."""

    def __init__(self, user_id: str | None = None, ipu_id: int | None = None) -> None:
        super().__init__()
        self._user_id = user_id
        self._ipu_id = ipu_id

    @staticmethod
    def useAutoId() -> None:
        """Number blocks without an id from "0" again; call it at the start of forward."""
        run = current_run()
        if run is not None:
            run.blocks.restart_automatic_ids()

    @staticmethod
    def start(user_id: str | None = None, ipu_id: int | None = None) -> None:
        """Begin a block that lasts until another one begins."""
        run = current_run()
        if run is not None:
            run.blocks.start(user_id, ipu_id)

    def __enter__(self) -> Self:
        run = current_run()
        if run is not None:
            run.blocks.open(self._user_id, self._ipu_id)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        run = current_run()
        if run is not None and error is None:
            run.blocks.close()

    def extra_repr(self) -> str:
        """What the block was given."""
        return f"user_id={self._user_id}, ipu_id={self._ipu_id}"


class _BlockStart:
    """The hook that `BeginBlock` puts on a module; a class, so that it can be copied and pickled with the module."""

    def __init__(self, user_id: str | None, ipu_id: int | None) -> None:
        self.user_id = user_id
        self.ipu_id = ipu_id

    def __call__(self, module: nn.Module, inputs: Any) -> None:
        Block.start(self.user_id, self.ipu_id)

    def __repr__(self) -> str:
        return f"BeginBlock(user_id={self.user_id}, ipu_id={self.ipu_id})"


class LegacyBeginBlockFn(nn.Module):
    """A module that begins a block and calls a function."""

    def __init__(
        self, layer_to_call: Callable[..., Any], user_id: str | None = None, ipu_id: int | None = None
    ) -> None:
        super().__init__()
        self._layer_to_call = layer_to_call
        self._user_id = user_id
        self._ipu_id = ipu_id
        self._begins = True

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Begin the block and call the function."""
        if self._begins:
            Block.start(self._user_id, self._ipu_id)
        return self._layer_to_call(*args, **kwargs)

    def extra_repr(self) -> str:
        """What the block was given."""
        start = _BlockStart(self._user_id, self._ipu_id) if self._begins else None
        return f"{start}, {self._layer_to_call}"


def BeginBlock(layer_to_call: Any, user_id: str | None = None, ipu_id: int | None = None) -> nn.Module:
    """Begin a block whenever this module runs, and return the module; a function is returned as a new module."""
    if isinstance(layer_to_call, nn.Module):
        if _starts_of(layer_to_call):
            raise createPoptorchError(
                f"{type(layer_to_call).__name__} module has already been assigned to a block. "
                "Call poptorch.removeBlocks on it first."
            )
        layer_to_call.register_forward_pre_hook(_BlockStart(user_id, ipu_id))
        return layer_to_call
    if callable(layer_to_call):
        return LegacyBeginBlockFn(layer_to_call, user_id, ipu_id)
    raise createPoptorchError(
        f"A block must begin with a torch.nn.Module or a function, not with {type(layer_to_call).__name__}."
    )


def BlockFunction(user_id: str | None = None, ipu_id: int | None = None) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator that runs a function as a block."""

    def as_block(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def in_block(*args: P.args, **kwargs: P.kwargs) -> R:
            with Block(user_id, ipu_id):
                return function(*args, **kwargs)

        return in_block

    return as_block


def removeBlocks(module: nn.Module) -> None:
    """Remove every block that `BeginBlock` added to this module or its submodules."""
    for part in module.modules():
        if isinstance(part, LegacyBeginBlockFn):
            part._begins = False
        for number in _starts_of(part):
            del forward_pre_hooks(part)[number]


def _starts_of(module: nn.Module) -> list[int]:
    return [number for number, hook in forward_pre_hooks(module).items() if isinstance(hook, _BlockStart)]
