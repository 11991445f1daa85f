"""Every error that Pilotage raises on purpose.

PilotageError
├── OptionError           a setting that cannot be
├── BackendError          the device asked for is not there, or failed
├── TorchVersionError     this torch lacks a name that Pilotage needs
├── CaptureError          the module cannot become a static program
│   ├── DataDependentError    Python control flow or a shape depends on data
│   ├── LossError             no loss, or more than one, to start backward from
│   └── BufferBroadcastError  replicas that are promised equal buffers would get different ones
├── InputError            the arguments of a call do not fit the program
│   ├── MissingArgumentError     forward needs one that is not given
│   ├── UnexpectedArgumentError  forward does not take one that is given
│   └── BatchDimensionError      the leading dimension cannot be cut into micro-batches
├── NotCompiledError      asked of an executor that has no program yet
├── AttachmentError       attached or detached at the wrong moment
├── TornStateError        a call was broken off in the middle of an update, and nothing has repaired the weights
├── LostModelError        a wrapped model would leave its device unnoticed
├── NonFiniteLossError    training produced NaN or infinity
├── DeviceMemoryError     the program does not fit
├── ProgramFileError      a stored program is cut short, altered, or of another version
├── DistributedError      instances cannot find, hear or follow each other
├── DatasetError          a data set is missing, cut short or corrupt
└── FetchError            the process that loads data in the background failed
    └── FetchStartError       it never delivered a first item
"""

from __future__ import annotations

__all__ = [
    "AttachmentError",
    "BackendError",
    "BatchDimensionError",
    "BufferBroadcastError",
    "CaptureError",
    "DataDependentError",
    "DatasetError",
    "DeviceMemoryError",
    "DistributedError",
    "FetchError",
    "FetchStartError",
    "InputError",
    "LossError",
    "LostModelError",
    "MissingArgumentError",
    "NonFiniteLossError",
    "NotCompiledError",
    "OptionError",
    "PilotageError",
    "ProgramFileError",
    "TorchVersionError",
    "TornStateError",
    "UnexpectedArgumentError",
]


class PilotageError(Exception):
    """The root of the tree above."""


class OptionError(PilotageError, ValueError):
    """A setting that cannot be."""


class BackendError(PilotageError, RuntimeError):
    """The device asked for is not there, or failed."""


class TorchVersionError(PilotageError, ImportError):
    """The installed torch lacks a name that Pilotage needs."""


class CaptureError(PilotageError, RuntimeError):
    """The module cannot become a static program."""


class DataDependentError(CaptureError):
    """Python control flow or a shape depends on the values of a tensor."""


class LossError(CaptureError):
    """There is no loss, or more than one, to start the backward pass from."""


class BufferBroadcastError(CaptureError):
    """Replicas that are promised equal buffers would get different ones."""


class InputError(PilotageError, ValueError):
    """The arguments of a call do not fit the program."""


class MissingArgumentError(InputError):
    """The module's forward needs an argument that the call does not give."""


class UnexpectedArgumentError(InputError):
    """The call gives an argument that the module's forward does not take, or gives one twice."""


class BatchDimensionError(InputError):
    """The leading dimension of an input cannot be cut into micro-batches."""


class NotCompiledError(PilotageError, RuntimeError):
    """Something was asked of an executor that has no program yet."""


class AttachmentError(PilotageError, RuntimeError):
    """An executor was attached or detached at the wrong moment."""


class TornStateError(PilotageError, RuntimeError):
    """A call was broken off in the middle of an update, and nothing has repaired the weights since."""


class LostModelError(PilotageError, RuntimeError):
    """A wrapped model was about to leave its device unnoticed."""


class NonFiniteLossError(PilotageError, ArithmeticError):
    """Training produced NaN or infinity."""


class DeviceMemoryError(PilotageError, RuntimeError):
    """The program does not fit into the memory of its device."""


class ProgramFileError(PilotageError, RuntimeError):
    """A stored program is cut short, altered, or of another version."""


class DistributedError(PilotageError, RuntimeError):
    """The instances of a job cannot find, hear or follow each other."""


class DatasetError(PilotageError, RuntimeError):
    """A data set is missing, cut short or corrupt."""


class FetchError(PilotageError, RuntimeError):
    """The process that loads data in the background failed."""


class FetchStartError(FetchError):
    """The process that loads data in the background never delivered a first item."""
