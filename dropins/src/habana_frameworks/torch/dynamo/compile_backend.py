"""The backend ``hpu_backend`` of torch.compile, an entry point of this distribution."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch.fx import GraphModule

import habana_frameworks.torch.core  # noqa: F401
from pilotage.engine import Noted, aot_autograd, log_event, make_boxed_func

_WITHOUT_MEANING_HERE = ("keep_input_mutations",)
"""Options that change copies on the card but no results."""


def hpu_backend(
    graph: GraphModule, inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None
) -> Callable[..., Any]:
    """Trace forward and backward into graphs, as the card would, and run them operation by operation."""
    if unknown := set(options or ()) - set(_WITHOUT_MEANING_HERE):
        raise ValueError(
            f"The emulated hpu_backend has no option {min(unknown)!r}. Choose one of: "
            f"{', '.join(_WITHOUT_MEANING_HERE)}."
        )
    return aot_autograd(fw_compiler=_run_as_it_is)(graph, inputs)


def _run_as_it_is(graph: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    operations = sum(node.op == "call_function" for node in graph.graph.nodes)
    log_event(Noted(message=f"hpu_backend: the card would compile a graph of {operations} operations."))
    boxed: Callable[..., Any] = make_boxed_func(graph.forward)
    return boxed
