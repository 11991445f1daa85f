"""Parsers for the user's types: how to find the tensors in them, and how to rebuild them."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from torch import Tensor

from pilotage.engine import Parsers
from poptorch._errors import createPoptorchError
from poptorch._logging import logger

__all__ = [
    "ICustomArgParser",
    "custom_arg_parsers",
    "getCustomParser",
    "registerCustomArgParser",
    "registerGeometricCustomArgParsers",
]


class ICustomArgParser(ABC):
    """Takes objects of one type apart into tensors and rebuilds them."""

    @abstractmethod
    def yieldTensors(self, struct: Any) -> Iterable[Tensor]:
        """Yield the tensors of an object, always in the same order."""

    @abstractmethod
    def reconstruct(self, original_structure: Any, tensor_iterator: Iterator[Tensor]) -> Any:
        """Make an object like the original from the tensors of the iterator."""


class _Parser:
    """A user's parser under the engine's names."""

    def __init__(self, parser: ICustomArgParser) -> None:
        self._parser = parser

    def tensors(self, value: Any) -> Iterable[Tensor]:
        return self._parser.yieldTensors(value)

    def rebuild(self, original: Any, tensors: Iterator[Tensor]) -> Any:
        return self._parser.reconstruct(original, tensors)


custom_arg_parsers: dict[type, ICustomArgParser] = {}
"""The registered parsers, by the type of objects that they take apart."""


class _EngineParsers(Mapping[type, _Parser]):
    """A live view of the registered parsers under the engine's names."""

    def __getitem__(self, kind: type) -> _Parser:
        return _Parser(custom_arg_parsers[kind])

    def __iter__(self) -> Iterator[type]:
        return iter(custom_arg_parsers)

    def __len__(self) -> int:
        return len(custom_arg_parsers)

    def __reduce__(self) -> tuple[type[dict[Any, Any]], tuple[dict[type, _Parser]]]:
        # Another process has not registered them.
        return dict, (dict(self),)


def registerCustomArgParser(arg_type: type, parser: ICustomArgParser | None) -> None:
    """Use this parser for objects of the type from now on; None removes the type's parser."""
    if parser is None:
        custom_arg_parsers.pop(arg_type, None)
    elif isinstance(parser, ICustomArgParser):
        custom_arg_parsers[arg_type] = parser
    else:
        raise createPoptorchError(
            f"The parser of {arg_type.__name__} must be an ICustomArgParser, not {type(parser).__name__}."
        )


def getCustomParser(value: Any) -> ICustomArgParser | None:
    """The parser of a value: that of its exact type, else the first one registered for a base class."""
    if type(value) in custom_arg_parsers:
        return custom_arg_parsers[type(value)]
    return next((parser for kind, parser in custom_arg_parsers.items() if isinstance(value, kind)), None)


def registerGeometricCustomArgParsers() -> None:
    """Register the parsers of ``poptorch_geometric`` for PyTorch Geometric's types, if it is installed."""
    try:
        types = importlib.import_module("poptorch_geometric.types")
    except ModuleNotFoundError as missing:
        logger.debug("The parsers of PyTorch Geometric's types are not registered: %s.", missing)
        return
    types.registerCustomArgParsers()


def registered_parsers() -> Parsers:
    """The registered parsers as the engine takes them; a live view, so later ones appear in it too."""
    return _EngineParsers()
