"""Suggests the argument that was probably meant when a function gets an unknown one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from pilotage.options.suggestions import did_you_mean

_ELSEWHERE = {
    "accelerator": "backend",
    "accumulate_grad_batches": "gradient_accumulation",
    "accumulation_steps": "gradient_accumulation",
    "callbacks": "listeners",
    "criterion": "loss",
    "device": "backend",
    "devices": "cards",
    "gradient_accumulation_steps": "gradient_accumulation",
    "gradient_clip_val": "clip_grad_norm",
    "loss_fn": "loss",
    "loss_function": "loss",
    "max_grad_norm": "clip_grad_norm",
    "steps_per_execution": "device_iterations",
}
"""Names of arguments in other libraries, each with ours."""

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def suggesting(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """The same function; its errors for unknown keyword arguments suggest the closest one and list all.

    Arguments that are given by position but must be named are refused with their names.
    """
    parameters = inspect.signature(function).parameters
    known = [name for name, each in parameters.items() if each.kind is not inspect.Parameter.POSITIONAL_ONLY]

    unnamed = [name for name, each in parameters.items() if each.kind is not inspect.Parameter.KEYWORD_ONLY]

    @functools.wraps(function)
    def checked(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        for name in kwargs:
            if name not in parameters:
                meant = _ELSEWHERE.get(name)
                hint = f" Did you mean {meant}?" if meant in parameters else did_you_mean(name, known)
                raise TypeError(
                    f"{function.__name__}() got an unexpected keyword argument {name!r}.{hint} "
                    f"The arguments are: {', '.join(known)}."
                )
        if len(args) > len(unnamed):
            raise TypeError(
                f"{function.__name__}() takes {' and '.join(unnamed)} by position, and all other arguments by name, "
                f"such as {known[len(unnamed)]}=."
            )
        return function(*args, **kwargs)

    return checked
