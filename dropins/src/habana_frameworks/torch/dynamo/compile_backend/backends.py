"""The backend ``hpu_backend`` of torch.compile, an entry point of this distribution."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch.fx import GraphModule

import habana_frameworks.torch.core  # noqa: F401
from habana_frameworks._emulation.events import EventId, publish
from habana_frameworks.torch.dynamo.compile_backend import config
from pilotage.engine import Noted, aot_autograd, log_event, make_boxed_func

compiled_operations: list[Callable[[dict[str, int]], None]] = []
"""Called with the operations of each graph, by name."""


def hpu_backend(graph_module: GraphModule, example_inputs: Sequence[Any], **kwargs: Any) -> Callable[..., Any]:
    """Trace forward and backward into graphs, as the card would, and run them operation by operation.

    ``options`` are those of ``config``; they change speed on the card, and nothing here.
    """
    _check(kwargs.pop("options", None) or {})
    if kwargs:
        raise TypeError(f"hpu_backend has no argument {min(kwargs)!r}. It takes options.")
    return aot_autograd(fw_compiler=_run_as_it_is)(graph_module, example_inputs)


def _check(options: Mapping[str, Any]) -> None:
    if unknown := set(options) - set(config.OPTIONS):
        raise ValueError(
            f"The emulated hpu_backend has no option {min(unknown)!r}. Choose one of: {', '.join(config.OPTIONS)}."
        )
    mode = options.get("decomposition_mode", config.decomposition_mode)
    if mode not in config.DECOMPOSITION_MODES:
        raise ValueError(
            f"decomposition_mode is {mode!r}. Choose one of: {', '.join(map(repr, config.DECOMPOSITION_MODES))}."
        )


def _run_as_it_is(graph: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    names = Counter(str(node.target) for node in graph.graph.nodes if node.op == "call_function")
    log_event(Noted(message=f"hpu_backend: the card would compile a graph of {names.total()} operations."))
    publish(EventId.GRAPH_COMPILATION, recipe=f"graph_{id(graph):x}", duration=0)
    for listener in tuple(compiled_operations):
        listener(dict(names))
    boxed: Callable[..., Any] = make_boxed_func(graph.forward)
    return boxed
