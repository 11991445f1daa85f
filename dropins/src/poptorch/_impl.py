"""Small functions that programs import from PopTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

from torch import Tensor

from poptorch._capture.capturing import current_run
from poptorch._capture.compile_hooks import registerPostCompileHook, registerPreCompileHook
from poptorch._capture.flags import isDispatchTracing, isRunningOnIpu, setDispatchTracing, setIpuContext
from poptorch._capture.substitution import _OverwriteContextManager
from poptorch._errors import createPoptorchError
from poptorch._hardware import ipuHardwareIsAvailable, ipuHardwareVersion

__all__ = [
    "_OverwriteContextManager",
    "accessAttributes",
    "createPoptorchError",
    "getIpuTensorId",
    "importPoptorchMetadataFromFile",
    "ipuHardwareIsAvailable",
    "ipuHardwareVersion",
    "isDispatchTracing",
    "isRunningOnIpu",
    "poptorchAtExit",
    "registerPostCompileHook",
    "registerPreCompileHook",
    "setDispatchTracing",
    "setIpuContext",
]


def getIpuTensorId(tensor: Tensor) -> int:
    """A number that is unique to this tensor in the model that is being compiled."""
    if not isinstance(tensor, Tensor):
        raise createPoptorchError(f"poptorch.getIpuTensorId takes a torch.Tensor, not {type(tensor).__name__}.")
    run = current_run()
    if run is None:
        raise createPoptorchError(
            "poptorch.getIpuTensorId: the tensor is not on the IPU. Tensors have ids only in the forward of a model "
            "that is being compiled."
        )
    return run.tensor_id(tensor)


def accessAttributes(attribute_id_str: str) -> NoReturn:
    """Raise, and say how to read the attributes of a custom op here: PopTorch's compiled code reads them by number."""
    raise createPoptorchError(
        f"The attributes {attribute_id_str!r} cannot be read by number: poptorch.custom_op passes its attributes to "
        "the implementation as keyword arguments. See poptorch.implementCustomOp."
    )


def importPoptorchMetadataFromFile(filename: str | Path) -> Any:
    """Raise, and say how to read a saved model here: its file holds no pickled metadata."""
    raise createPoptorchError(
        f"The metadata of {str(filename)!r} cannot be read separately: files written here contain no pickled objects. "
        "Use poptorch.load to run the model, and its .options to see how it was compiled."
    )


def poptorchAtExit() -> None:
    """Do nothing: no device has to be released before Python ends."""


def _restoreWrapperIfNecessary(obj: Any) -> Any:
    """The object itself: wrapping changes neither a module's class nor those of its tensors.

    Objects that PopTorch has pickled name this function.
    """
    return obj
