"""Whether a model is being captured right now, for programs that ask PopTorch's private functions."""

from __future__ import annotations

from contextvars import ContextVar

from pilotage.engine import forward_is_running
from poptorch._capture.capturing import current_run

__all__ = ["isDispatchTracing", "isRunningOnIpu", "setDispatchTracing", "setIpuContext"]

_says_tracing: ContextVar[bool] = ContextVar("poptorch_says_tracing", default=False)
_says_ipu: ContextVar[bool] = ContextVar("poptorch_says_ipu", default=False)


def isRunningOnIpu() -> bool:
    """Whether the wrapper, and not plain PyTorch, is running the model's forward right now."""
    return forward_is_running() or _says_ipu.get()


def isDispatchTracing() -> bool:
    """Whether forward is being captured right now."""
    return current_run() is not None or _says_tracing.get()


def setIpuContext(val: bool) -> None:
    """Let `isRunningOnIpu` return True outside of forward as well; inside of forward it always does."""
    _says_ipu.set(bool(val))


def setDispatchTracing(val: bool) -> None:
    """Let `isDispatchTracing` return True outside of a capture as well; during a capture it always does."""
    _says_tracing.set(bool(val))
