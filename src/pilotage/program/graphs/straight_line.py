"""A graph as one Python function that calls torch's kernels directly.

The code that FX generates looks up every operation by name and calls it through a Python method. Here each operation is
bound once, as a default value of the function's last parameters. Values are freed after their last use, and some
results overwrite an argument that nothing else needs.
"""

from __future__ import annotations

import keyword
import linecache
import operator
import re
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor
from torch.fx import GraphModule, Node

from pilotage.errors import CaptureError
from pilotage.program.graphs.in_place import in_place
from pilotage.torch_private import OpOverload, kernel_of

FILE_NAME = "<pilotage graph"
"""The prefix of such a function's file name in a traceback; its lines read ``node = operation(...)``."""


def straight_line(graph: GraphModule) -> Callable[..., list[Tensor]]:
    """A function that computes the graph."""
    source = _Source(graph)
    body = list(source.lines())
    inputs = [_identifier(node.name) for node in graph.graph.nodes if node.op == "placeholder"]
    bound = source.bound
    head = ", ".join([*inputs, "*", *(f"{name}={name}" for name in bound)] if bound else inputs)
    text = "\n".join([f"def run({head}):", *(f"    {line}" for line in body)]) + "\n"
    file_name = f"{FILE_NAME} {id(bound):x}>"
    # The traceback module reads source lines from this cache, so a failing operation can be found.
    linecache.cache[file_name] = (len(text), None, text.splitlines(keepends=True), file_name)
    exec(compile(text, file_name, "exec"), bound)
    function: Callable[..., list[Tensor]] = bound["run"]
    weakref.finalize(function, linecache.cache.pop, file_name, None)
    return function


class _Source:
    """The lines of a graph's function, and the values bound to its names.

    The text contains only identifiers and numbers, and identifiers are checked again: a graph may come from a file.
    """

    def __init__(self, graph: GraphModule) -> None:
        self._graph = graph
        self._taken = {node.name for node in graph.graph.nodes}
        self._calls: dict[Any, str] = {}
        self.bound: dict[str, Any] = {}

    def lines(self) -> Iterator[str]:
        dropped = _last_uses(self._graph)
        for node in self._graph.graph.nodes:
            name = _identifier(node.name)
            match node.op:
                case "placeholder":
                    continue
                case "get_attr":
                    yield f"{name} = {self._bind('_constant', getattr(self._graph, str(node.target)))}"
                case "output":
                    yield f"return {self._text(node.args[0])}"
                case _:
                    yield f"{name} = {self._call(node)}"
            if dropped[node]:
                yield f"{' = '.join(dropped[node])} = None"

    def _call(self, node: Node) -> str:
        target = node.target
        if target is operator.getitem and not node.kwargs and isinstance(node.args[1], int):
            return f"{self._text(node.args[0])}[{self._text(node.args[1])}]"
        overwriting = in_place(node)
        if overwriting is not None:
            target = overwriting.operation
        if target not in self._calls:
            kernel = kernel_of(target) if isinstance(target, OpOverload) else target
            self._calls[target] = self._bind(re.sub(r"[^A-Za-z0-9_]", "_", f"_call_{target}"), kernel)
        words = [self._text(argument) for argument in node.args]
        words += [f"{_identifier(key)}={self._text(value)}" for key, value in node.kwargs.items()]
        if overwriting is not None and overwriting.keyword is not None:
            words.append(f"{overwriting.keyword}={self._text(overwriting.overwritten)}")
        return f"{self._calls[target]}({', '.join(words)})"

    def _text(self, value: Any) -> str:
        """A value as source text; anything but numbers and lists is bound to a name."""
        match value:
            case Node():
                return value.name
            case bool() | None:
                return repr(value)
            case int():
                return int.__repr__(value)
            case float() if value == value and abs(value) != float("inf"):
                return float.__repr__(value)
            case list():
                return f"[{', '.join(map(self._text, value))}]"
            case tuple():
                return f"({''.join(f'{self._text(item)}, ' for item in value)})"
        return self._bind("_value", value)

    def _bind(self, name: str, value: Any) -> str:
        """Bind a value to a unique name."""
        unique, number = name, 0
        while unique in self._taken:
            number += 1
            unique = f"{name}_{number}"
        self._taken.add(unique)
        self.bound[unique] = value
        return unique


def _identifier(name: str) -> str:
    if not name.isascii() or not name.isidentifier() or keyword.iskeyword(name):
        raise CaptureError(f"A graph cannot run: it uses the name {name!r}, which is not a Python identifier.")
    return name


def _last_uses(graph: GraphModule) -> dict[Node, list[str]]:
    """For each node, the names of values that are not needed after it."""
    seen: set[Node] = set()
    dropped: dict[Node, list[str]] = {}
    for node in reversed(graph.graph.nodes):
        dropped[node] = []
        if node.op == "output":
            seen.update(node.all_input_nodes)
            continue
        for used in node.all_input_nodes:
            if used not in seen:
                seen.add(used)
                dropped[node].append(used.name)
        if node.op == "call_function" and not node.users:
            dropped[node].append(node.name)
    return dropped
