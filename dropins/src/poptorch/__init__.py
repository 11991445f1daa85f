"""PopTorch's interface over Pilotage: programs written for Graphcore's PopTorch run on CPU, CUDA and Gaudi.

No SDK is needed. Where a vendor's ``poptorch`` is installed, do not install this one alongside it.
"""

from __future__ import annotations

from pilotage_dropins import fallbacks as _fallbacks  # noqa: F401
from pilotage_dropins import needs_torch as _needs_torch  # noqa: F401
from poptorch import _options_config as _options_config
from poptorch import _printing, enums, ops, optim, options, profiling
from poptorch import _utils as _utils
from poptorch._args_parser import ICustomArgParser, registerCustomArgParser, registerGeometricCustomArgParsers
from poptorch._data.asynchronous_data_accessor import AsynchronousDataAccessor
from poptorch._dataloader import DataLoader
from poptorch._errors import createPoptorchError
from poptorch._executor.files import load
from poptorch._executor.wrapping import inferenceModel, trainingModel
from poptorch._impl import (
    _OverwriteContextManager,
    accessAttributes,
    getIpuTensorId,
    importPoptorchMetadataFromFile,
    ipuHardwareIsAvailable,
    ipuHardwareVersion,
    isRunningOnIpu,
    poptorchAtExit,
    registerPostCompileHook,
    registerPreCompileHook,
)
from poptorch._logging import logger, setLogLevel
from poptorch._poplar_executor import PoplarExecutor
from poptorch._printing import *  # noqa: F403
from poptorch._version import __version__
from poptorch.enums import *  # noqa: F403
from poptorch.ops import *  # noqa: F403
from poptorch.options import *  # noqa: F403
from poptorch.poptorch_core import Error, RecoverableError, UnrecoverableError

__pilotage_facade__ = True
"""Errors name the user's own line, and none of this package."""

__all__ = [
    "AsynchronousDataAccessor",
    "DataLoader",
    "Error",
    "ICustomArgParser",
    "PoplarExecutor",
    "RecoverableError",
    "UnrecoverableError",
    "_OverwriteContextManager",
    "__version__",
    "accessAttributes",
    "createPoptorchError",
    "enums",
    "getIpuTensorId",
    "importPoptorchMetadataFromFile",
    "inferenceModel",
    "ipuHardwareIsAvailable",
    "ipuHardwareVersion",
    "isRunningOnIpu",
    "load",
    "logger",
    "ops",
    "optim",
    "options",
    "poptorchAtExit",
    "profiling",
    "registerCustomArgParser",
    "registerGeometricCustomArgParsers",
    "registerPostCompileHook",
    "registerPreCompileHook",
    "setLogLevel",
    "trainingModel",
    *_printing.__all__,
    *enums.__all__,
    *ops.__all__,
    *options.__all__,
]
