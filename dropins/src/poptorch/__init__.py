"""PopTorch's interface over Pilotage: programs written for Graphcore's PopTorch run on CPU, CUDA and Gaudi.

No SDK is needed. Where a vendor's ``poptorch`` is installed, do not install this one beside it.
"""

from __future__ import annotations

from poptorch import enums, ops, options
from poptorch._dataloader import AsynchronousDataAccessor, DataLoader
from poptorch._errors import createPoptorchError
from poptorch._logging import setLogLevel
from poptorch.enums import *  # noqa: F403
from poptorch.ops import *  # noqa: F403
from poptorch.options import *  # noqa: F403
from poptorch.poptorch_core import Error, RecoverableError, UnrecoverableError

try:
    from poptorch import optim
    from poptorch._poplar_executor import PoplarExecutor
    from poptorch._wrapping import inferenceModel, trainingModel
except ImportError:
    pass

__version__ = "3.4.0"

__all__ = [
    "AsynchronousDataAccessor",
    "DataLoader",
    "Error",
    "PoplarExecutor",
    "RecoverableError",
    "UnrecoverableError",
    "createPoptorchError",
    "enums",
    "inferenceModel",
    "ops",
    "optim",
    "options",
    "setLogLevel",
    "trainingModel",
    *enums.__all__,
    *ops.__all__,
    *options.__all__,
]
