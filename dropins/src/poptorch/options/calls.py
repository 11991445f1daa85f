"""Options written as text: a JSON object, or a file with an option call on each line.

Nothing here is executed. A text becomes a chain of names and plain arguments, and only names of options are followed.
"""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from poptorch._options_impl import Freezable, similar_option
from poptorch.options.written_values import RefusedValueError, arguments_of, value_of_text

__all__ = ["ConfigFileError", "OptionCall", "calls_of_file", "calls_of_json"]


class ConfigFileError(Exception):
    """A line of a file of options that is not an option call."""


@dataclass(frozen=True, slots=True)
class Link:
    """One name in a chain, with its arguments if it is called."""

    name: str
    arguments: tuple[tuple[Any, ...], dict[str, Any]] | None = None


@dataclass(frozen=True, slots=True)
class OptionCall:
    """A chain that starts at an Options object and ends with a call."""

    links: tuple[Link, ...]
    origin: str

    def apply(self, options: Freezable) -> None:
        """Follow the chain; an error that an option raises carries a note of where the call was written."""
        try:
            self._follow(options)
        except Exception as error:
            error.add_note(self.origin)
            raise

    def _follow(self, target: Any) -> None:
        for link in self.links:
            if not isinstance(target, Freezable):
                raise AttributeError(f"Invalid attribute {link.name}.")
            if link.name.startswith("_") and link.name != "_Popart":
                raise AttributeError(f"Invalid attribute {link.name}.{similar_option(target, link.name)}")
            target = getattr(target, link.name)
            if link.arguments is not None:
                if not callable(target):
                    raise AttributeError(f"Invalid attribute {link.name}. It is a value and not an option call.")
                positional, named = link.arguments
                target = target(*positional, **named)


def calls_of_json(text: str) -> Iterator[OptionCall]:
    """The calls of a JSON object, in order; a name that occurs twice is called twice."""
    pairs = json.loads(text, object_pairs_hook=_Pairs)
    if not isinstance(pairs, _Pairs):
        raise ValueError(f"Options in JSON must be an object of names and arguments, not {text!r}.")
    for path, value in pairs:
        *groups, method = path.split(".")
        arguments = (
            tuple(map(_plain, value)) if isinstance(value, list) and not isinstance(value, _Pairs) else (_plain(value),)
        )
        links = (*map(Link, groups), Link(method, (arguments, {})))
        yield OptionCall(links, f"From the JSON option {path!r}.")


class _Pairs(list[tuple[str, Any]]):
    """A JSON object, with names that occur twice."""


def _plain(value: Any) -> Any:
    if isinstance(value, _Pairs):
        return {name: _plain(element) for name, element in value}
    if isinstance(value, list):
        return [_plain(element) for element in value]
    return value_of_text(value) if isinstance(value, str) else value


def calls_of_file(path: str | os.PathLike[str]) -> Sequence[OptionCall]:
    """The calls of a file, all of them read before the first is applied."""
    lines = (line.strip() for line in Path(path).read_text(encoding="utf-8").splitlines())
    kept = (line for line in lines if line and not line.startswith("#"))
    return [_call_of_line(line, number, Path(path).name) for number, line in enumerate(kept, start=1)]


def _call_of_line(line: str, number: int, file: str) -> OptionCall:
    source = f"options.{line}"
    where = f"at line {number} of {file}"
    try:
        return OptionCall(tuple(_links(ast.parse(source, mode="exec"))), f"{where}: {source}")
    except SyntaxError as error:
        raise ConfigFileError(f"SyntaxError {where}: {error.msg}\n> {source}") from error
    except AssertionError as error:
        error.add_note(f"{where}: {source}")
        raise
    except (ValueError, TypeError) as error:
        raise ConfigFileError(f"Refused {where}: {error}\n> {source}") from error


def _links(module: ast.Module) -> list[Link]:
    match module.body:
        case [ast.Expr(value=ast.Call() as call)]:
            return _chain(call)
    raise RefusedValueError("A line must be one option call, such as deviceIterations(4).")


def _chain(node: ast.expr) -> list[Link]:
    match node:
        case ast.Name():
            return []
        case ast.Attribute(value=inner, attr=name):
            return [*_chain(inner), Link(name)]
        case ast.Call(func=ast.Attribute(value=inner, attr=name), args=args, keywords=keywords):
            return [*_chain(inner), Link(name, arguments_of(args, keywords))]
    raise RefusedValueError(f"{ast.unparse(node)} is not an option call.")
