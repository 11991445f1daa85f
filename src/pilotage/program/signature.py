"""Binds the arguments of a call to the signature of the module's forward."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from pilotage.errors import MissingArgumentError, UnexpectedArgumentError

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class CallSignature:
    """Fills in defaults and makes keyword arguments positional where possible, so that equal calls look equal."""

    def __init__(self, signature: inspect.Signature) -> None:
        self._signature = signature
        self.parameters = self._signature.parameters
        self._all_positional = all(parameter.kind in _POSITIONAL for parameter in self.parameters.values())

    @classmethod
    def of(cls, forward: Callable[..., Any]) -> CallSignature:
        """The signature of a module's forward."""
        return cls(inspect.signature(forward))

    @property
    def names(self) -> list[str]:
        """The names of the positional parameters."""
        return [name for name, parameter in self.parameters.items() if parameter.kind in _POSITIONAL]

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments in normal form."""
        if not kwargs and self._all_positional and len(args) == len(self.parameters):
            return args, kwargs
        self._refuse_unexpected(args, kwargs)
        self._refuse_missing(args, kwargs)
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def _refuse_unexpected(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        kinds = {parameter.kind for parameter in self.parameters.values()}
        names = self.names
        if len(args) > len(names) and inspect.Parameter.VAR_POSITIONAL not in kinds:
            raise UnexpectedArgumentError(
                f"Too many arguments: {len(args)} were given, forward takes {len(names)} ({', '.join(names)})."
            )
        for name in kwargs:
            if name in names[: len(args)] and self._takes_by_name(name):
                raise UnexpectedArgumentError(f"The argument {name} was passed twice: by position and by name.")
            if not self._takes_by_name(name) and inspect.Parameter.VAR_KEYWORD not in kinds:
                raise UnexpectedArgumentError(
                    f"Unexpected keyword argument {name!r}. forward takes: {', '.join(self.parameters)}."
                )

    def _refuse_missing(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given = set(self.names[: len(args)]) | set(filter(self._takes_by_name, kwargs))
        for name, parameter in self.parameters.items():
            wanted = parameter.kind in (*_POSITIONAL, inspect.Parameter.KEYWORD_ONLY)
            if wanted and parameter.default is inspect.Parameter.empty and name not in given:
                raise MissingArgumentError(f"Mandatory parameter {name} missing. Pass it by position or by name.")

    def _takes_by_name(self, name: str) -> bool:
        return name in self.parameters and self.parameters[name].kind in _BY_NAME
