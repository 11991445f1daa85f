"""PopTorch's error tree, and the check of the options for a backend.

Error
├── RecoverableError      a reset of the hardware helps
└── UnrecoverableError    a reset does not help
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, NoReturn

from poptorch._logging import backend_logger
from poptorch._options.popart import is_backend_option, similar_option

__all__ = ["Error", "RecoverableError", "TestErrorType", "UnrecoverableError", "isCompilingWithDispatcher"]


class Error(Exception):
    """An error that PopTorch reports, with the layer that it comes from."""

    def __init__(
        self, text: str = "", *, type: str = "poptorch_cpp_error", message: str | None = None, location: str = ""
    ) -> None:
        super().__init__(text)
        self.type = type
        self.message = text if message is None else message
        self.location = location


class RecoverableError(Error):
    """An error of the device that ``recovery_action`` recovers from."""

    def __init__(
        self,
        text: str = "",
        *,
        type: str = "poplar_recoverable_runtime_error",
        message: str | None = None,
        location: str = "",
        recovery_action: str = "FULL_RESET",
    ) -> None:
        if recovery_action not in _RECOVERY_ACTIONS:
            raise ValueError(
                f"No recovery action {recovery_action!r}. Choose one of: {', '.join(sorted(_RECOVERY_ACTIONS))}."
            )
        super().__init__(text, type=type, message=message, location=location)
        self.recovery_action = recovery_action


class UnrecoverableError(Error):
    """An error of the device that no reset recovers from."""

    def __init__(
        self,
        text: str = "",
        *,
        type: str = "poplar_unrecoverable_runtime_error",
        message: str | None = None,
        location: str = "",
    ) -> None:
        super().__init__(text, type=type, message=message, location=location)


_RECOVERY_ACTIONS = frozenset({"IPU_RESET", "LINK_RESET", "PARTITION_RESET", "FULL_RESET"})


class TestErrorType(Enum):
    """The kinds of errors that `_throwTestError` raises."""

    __test__ = False

    Poptorch = 0
    Popart = 1
    PopartInternal = 2
    Poplibs = 3
    PoplarUnrecoverable = 4
    PoplarUnknown = 5
    PoplarRecoverableFullReset = 6
    PoplarLinkError = 7


_TEST_ERRORS: dict[TestErrorType, tuple[type[Error], str]] = {
    TestErrorType.Poptorch: (Error, "poptorch_cpp_error"),
    TestErrorType.Popart: (Error, "popart_exception"),
    TestErrorType.PopartInternal: (Error, "popart_internal_exception"),
    TestErrorType.Poplibs: (Error, "poplibs_exception"),
    TestErrorType.PoplarUnrecoverable: (UnrecoverableError, "poplar_unrecoverable_runtime_error"),
    TestErrorType.PoplarUnknown: (Error, "poplar_unknown_error"),
    TestErrorType.PoplarRecoverableFullReset: (RecoverableError, "poplar_recoverable_runtime_error"),
    TestErrorType.PoplarLinkError: (Error, "poplar_link_error"),
}


def _throwTestError(kind: TestErrorType) -> NoReturn:
    """Raise an error as the given layer would, for programs that test how they handle it."""
    error, layer = _TEST_ERRORS[kind]
    message = f"This is a test of the error {kind.name}."
    if kind is TestErrorType.PoplarLinkError:
        message += " Output of the linker:\n-lfoo not found"
    location = "[0] throwTestError::bottomLevel\n[1] throwTestError::topLevel"
    raise error(f"'{layer}': {message}\nError raised in:\n{location}", type=layer, message=message, location=location)


def isCompilingWithDispatcher() -> bool:
    """Whether a model is being compiled right now."""
    from poptorch._capture.capturing import current_capture  # Its checks raise the errors of this module.

    return current_capture() is not None


def _validateOptions(options: Mapping[str, Any]) -> None:
    """Raise for a name that no backend knows or a value that none can hold; log what was set."""
    for name, value in options.items():
        _validate_value(name, value)
        if not is_backend_option(name):
            raise Error(f"Unknown {_kind(value)} option {name}.{similar_option(name)}")
        _log_setting(name, value)


def _validate_value(name: str, value: object) -> None:
    if value is None or isinstance(value, bool | int | float | str):
        return
    if isinstance(value, Mapping):
        elements: list[object] = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set | frozenset):
        elements = list(value)
    else:
        raise Error(f"Unknown value type {type(value).__module__}.{type(value).__qualname__} for option {name}")
    for element in elements:
        _validate_value(name, element)


def _kind(value: object) -> str:
    for kind in (bool, int, float, str, list, tuple, set, Mapping):
        if isinstance(value, kind):
            return {"str": "string", "Mapping": "dictionary"}.get(kind.__name__, kind.__name__)
    return type(value).__name__


def _log_setting(name: str, value: object) -> None:
    if isinstance(value, Mapping):
        for key, element in value.items():
            backend_logger.debug("poptorch.Options set %s[%s] to %s", name, key, _shown(element))
    elif isinstance(value, list | tuple | set | frozenset):
        for element in value:
            backend_logger.debug("poptorch.Options added %s to %s", _shown(element), name)
    else:
        backend_logger.debug("poptorch.Options set %s to value %s", name, _shown(value))


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if isinstance(value, int) else str(value)
