"""Every error that Pilotage raises on purpose.

PilotageError
├── OptionError           an invalid or contradictory setting
├── TorchVersionError     this torch lacks a name that Pilotage needs
├── CaptureError          the module cannot become a static program
│   ├── DataDependentError    Python control flow or a shape depends on data
│   ├── LossError             no loss, or more than one, to start backward from
│   └── BufferBroadcastError  replicas would get different buffers where equal ones are guaranteed
├── InputError            the arguments of a call do not fit the program
│   ├── MissingArgumentError     the call lacks an argument of forward
│   ├── UnexpectedArgumentError  the call has an argument that forward does not take
│   └── BatchDimensionError      the leading dimension cannot be cut into micro-batches
├── NotCompiledError      the executor has no program yet
├── AttachmentError       attached or detached at the wrong time
├── WeightsError          the weights on the device cannot be read now, or do not fit the host's
├── TornStateError        an update was interrupted, so the weights are inconsistent
├── LostModelError        a wrapped model would lose its trained weights
├── MismatchError         a program and eager PyTorch differ by more than rounding
├── NonFiniteLossError    training produced NaN or infinity
├── DeviceMemoryError     the program does not fit
├── ProgramFileError      a stored program is truncated, altered or of another version
├── DistributedError      instances cannot find, reach or keep up with each other
├── DatasetError          a data set is missing, truncated or corrupt
├── ProofError            a script to be proved does not run, or does not train
├── PortingError          a script to be ported cannot be read or written
├── ProfileError          a script to be profiled does not run, or runs no update
├── PredictionError       a script cannot be predicted
├── ReportError           a report of a prediction or profile is damaged or inconsistent
└── FetchError            the process that loads data in the background failed
    └── FetchStartError       it never delivered its first item
"""

from __future__ import annotations

__all__ = [
    "AttachmentError",
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
    "MismatchError",
    "MissingArgumentError",
    "NonFiniteLossError",
    "NotCompiledError",
    "OptionError",
    "PilotageError",
    "PortingError",
    "PredictionError",
    "ProfileError",
    "ProgramFileError",
    "ProofError",
    "ReportError",
    "TorchVersionError",
    "TornStateError",
    "UnexpectedArgumentError",
    "WeightsError",
]


class PilotageError(Exception):
    """The base class of all errors of Pilotage."""


class OptionError(PilotageError, ValueError):
    """An invalid or contradictory setting."""


class TorchVersionError(PilotageError, ImportError):
    """The installed torch lacks a name that Pilotage needs."""


class CaptureError(PilotageError, RuntimeError):
    """The module cannot become a static program."""


class DataDependentError(CaptureError):
    """Python control flow or a shape depends on the values of a tensor."""


class LossError(CaptureError):
    """The backward pass has no loss to start from, or more than one."""


class BufferBroadcastError(CaptureError):
    """Replicas would get different buffers where equal ones are guaranteed."""


class InputError(PilotageError, ValueError):
    """The arguments of a call do not fit the program."""


class MissingArgumentError(InputError):
    """The call lacks an argument that the module's forward needs."""


class UnexpectedArgumentError(InputError):
    """The call has an argument that the module's forward does not take, or the same one twice."""


class BatchDimensionError(InputError):
    """The leading dimension of an input cannot be cut into micro-batches."""


class NotCompiledError(PilotageError, RuntimeError):
    """The executor has no program yet."""


class AttachmentError(PilotageError, RuntimeError):
    """An executor was attached or detached at the wrong time."""


class WeightsError(PilotageError, RuntimeError):
    """The weights on the device cannot be read now, or do not fit the host's."""


class TornStateError(PilotageError, RuntimeError):
    """An update was interrupted, and the weights have not been repaired since."""


class LostModelError(PilotageError, RuntimeError):
    """A wrapped model would have lost its trained weights unnoticed."""


class MismatchError(PilotageError, RuntimeError):
    """A program and eager PyTorch differ by more than rounding."""


class NonFiniteLossError(PilotageError, ArithmeticError):
    """Training produced NaN or infinity."""


class DeviceMemoryError(PilotageError, RuntimeError):
    """The program does not fit into the memory of its device."""


class ProgramFileError(PilotageError, RuntimeError):
    """A stored program is truncated, altered or of another version."""


class DistributedError(PilotageError, RuntimeError):
    """The instances of a job cannot find, reach or keep up with each other."""


class DatasetError(PilotageError, RuntimeError):
    """A data set is missing, truncated or corrupt."""


class ProofError(PilotageError, RuntimeError):
    """A script to be proved does not run, or does not train."""


class PortingError(PilotageError, RuntimeError):
    """A script to be ported cannot be read or written."""


class ProfileError(PilotageError, RuntimeError):
    """A script to be profiled does not run, or runs no update."""


class PredictionError(PilotageError, RuntimeError):
    """A script cannot be predicted: it does not run, or it never reaches a training step."""


class ReportError(PilotageError, ValueError):
    """A report of a prediction or profile is damaged or inconsistent."""


class FetchError(PilotageError, RuntimeError):
    """The process that loads data in the background failed."""


class FetchStartError(FetchError):
    """The process that loads data in the background never delivered its first item."""
