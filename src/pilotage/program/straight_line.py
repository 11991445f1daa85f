"""A graph as one Python function that calls torch's kernels directly.

FX's own code looks every operation up by name at every call and goes through a Python method to reach it. Here each
operation is bound once, as a default value of the function's last parameters, and values are dropped at their last use.
"""

from __future__ import annotations

import linecache
import re
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

FILE_NAME = "<pilotage graph"
"""How the file of such a function begins in a traceback; its lines read ``node = operation(...)``."""


def straight_line(graph: GraphModule) -> Callable[..., list[Tensor]]:
    """A function that computes what the graph computes."""
    bound: dict[str, Any] = {}
    inputs = [node.name for node in graph.graph.nodes if node.op == "placeholder"]
    body = list(_lines(graph, bound))
    head = ", ".join([*inputs, "*", *(f"{name}={name}" for name in bound)] if bound else inputs)
    source = "\n".join([f"def run({head}):", *(f"    {line}" for line in body)]) + "\n"
    file_name = f"{FILE_NAME} {id(bound):x}>"
    # The traceback module reads source lines from this cache, which is how a failing operation is found.
    linecache.cache[file_name] = (len(source), None, source.splitlines(keepends=True), file_name)
    exec(compile(source, file_name, "exec"), bound)
    function: Callable[..., list[Tensor]] = bound["run"]
    weakref.finalize(function, linecache.cache.pop, file_name, None)
    return function


def _lines(graph: GraphModule, bound: dict[str, Any]) -> Iterator[str]:
    dropped = _last_uses(graph)
    for node in graph.graph.nodes:
        match node.op:
            case "placeholder":
                continue
            case "get_attr":
                bound[f"_constant_{node.name}"] = getattr(graph, str(node.target))
                yield f"{node.name} = _constant_{node.name}"
            case "output":
                yield f"return {_text(node.args[0], bound)}"
            case _:
                yield f"{node.name} = {_call(node, bound)}"
        if dropped[node]:
            yield f"{' = '.join(dropped[node])} = None"


def _call(node: Node, bound: dict[str, Any]) -> str:
    target = node.target
    name = re.sub(r"\W", "_", f"_call_{target}")
    bound[name] = target._op if isinstance(target, torch._ops.OpOverload) else target
    words = [_text(argument, bound) for argument in node.args]
    words += [f"{key}={_text(value, bound)}" for key, value in node.kwargs.items()]
    return f"{name}({', '.join(words)})"


def _text(value: Any, bound: dict[str, Any]) -> str:
    """A value as it is written in source; what has no literal form is bound to a name."""
    match value:
        case Node():
            return value.name
        case bool() | int() | str() | None:
            return repr(value)
        case float() if value == value and abs(value) != float("inf"):
            return repr(value)
        case list():
            return f"[{', '.join(_text(item, bound) for item in value)}]"
        case tuple():
            return f"({''.join(f'{_text(item, bound)}, ' for item in value)})"
    name = f"_value_{len(bound)}"
    bound[name] = value
    return name


def _last_uses(graph: GraphModule) -> dict[Node, list[str]]:
    """For each node, the names of values that nothing needs after it."""
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
