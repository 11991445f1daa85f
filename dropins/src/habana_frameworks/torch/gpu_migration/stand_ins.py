"""Functions and classes of the card that replace those of CUDA and log their calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from habana_frameworks.torch.gpu_migration.calls import Kind, call_text, log_call
from habana_frameworks.torch.gpu_migration.devices import on_card


def standing_in(original: Any, name: str, theirs: Callable[..., Any], kind: Kind, target: str) -> Any:
    """Make a function or class that replaces the original and maps device arguments to the card."""
    if isinstance(theirs, type):
        return _class_standing_in(name, theirs, kind, target)
    signature = inspect.signature(theirs)

    @wraps(original, updated=())
    def stand_in(*args: Any, **kwargs: Any) -> Any:
        given = _with_card(signature.bind(*args, **kwargs))
        log_call(kind, call_text(name, args, kwargs), _became(target, given))
        return theirs(*given.args, **given.kwargs)

    return stand_in


def _class_standing_in(name: str, theirs: type, kind: Kind, target: str) -> type:
    signature = inspect.signature(theirs)

    def noted(self: Any, *args: Any, **kwargs: Any) -> None:
        given = _with_card(signature.bind(*args, **kwargs))
        log_call(kind, call_text(name, args, kwargs), _became(target, given))
        theirs.__init__(self, *given.args, **given.kwargs)  # type: ignore[misc]

    # Must be a class: torch uses these names in annotations and as base classes.
    return type(theirs.__name__, (theirs,), {"__init__": noted, "__doc__": theirs.__doc__})


def _with_card(given: inspect.BoundArguments) -> inspect.BoundArguments:
    if "device" in given.arguments:
        given.arguments["device"] = on_card(given.arguments["device"])
    return given


def _became(target: str, given: inspect.BoundArguments) -> str:
    """The call as text, or a description if nothing is called."""
    return call_text(target, given.args, given.kwargs) if target.startswith("torch.") else target
