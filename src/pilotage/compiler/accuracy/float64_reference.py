"""Runs a graph in float64, as a reference for its own results and those of other ways.

All floating-point values are float64, and the graph's own casts to narrower types are skipped. Random draws and
operations without float64 kernels run in the graph's own types, on rounded arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Interpreter, Node

from pilotage.compiler.failures import described
from pilotage.program.layout import StateLayout
from pilotage.program.program import Program
from pilotage.program.specification import TensorSpec
from pilotage.torch_private import OpOverload, schema_of, tree_map, tree_map_only

Dtypes = dict[Node, Any]
"""The types of the results of each node."""

_WIDE: Mapping[torch.dtype, torch.dtype] = {
    torch.float32: torch.float64,
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}
_ABOUT_BITS = frozenset({torch.ops.aten.view.dtype})
"""Operations on the bits of a number, not on its value."""


def wide(dtype: torch.dtype) -> torch.dtype:
    """The widest type of the same kind."""
    return _WIDE.get(dtype, dtype)


def widened(tensor: Tensor) -> Tensor:
    """The tensor in its widest type."""
    return tensor.to(wide(tensor.dtype))


def in_float64(program: Program) -> Program:
    """The program with a float64 state."""
    layout = program.layout
    return replace(program, layout=_layout(layout))


def recording_dtypes(graph: GraphModule, dtypes: Dtypes) -> Callable[..., list[Tensor]]:
    """A function that runs the graph and records the types of its results."""
    return lambda *arguments: list(_DtypeRecorder(graph, dtypes).run(*arguments))


def float64_reference(graph: GraphModule, dtypes: Dtypes, problems: dict[str, str]) -> Callable[..., list[Tensor]]:
    """A function that runs the graph in float64; ``problems`` collects the operations that cannot."""
    return lambda *arguments: list(_Float64Interpreter(graph, dtypes, problems).run(*arguments))


class _DtypeRecorder(Interpreter):
    def __init__(self, graph: GraphModule, dtypes: Dtypes) -> None:
        super().__init__(graph)
        self._dtypes = dtypes

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        self._dtypes[n] = tree_map_only(Tensor, lambda each: each.dtype, result)
        return result


class _Float64Interpreter(Interpreter):
    def __init__(self, graph: GraphModule, dtypes: Dtypes, problems: dict[str, str]) -> None:
        super().__init__(graph)
        self._dtypes, self._problems = dtypes, problems

    def run_node(self, n: Node) -> Any:
        if n.op == "get_attr":
            return tree_map_only(Tensor, widened, super().run_node(n))
        if not isinstance(n.target, OpOverload):
            return super().run_node(n)
        if torch.Tag.nondeterministic_seeded in n.target.tags or n.target in _ABOUT_BITS:
            return self._as_in_the_graph(n, n.target)
        args, kwargs = tree_map_only(torch.dtype, wide, self.fetch_args_kwargs_from_env(n))
        try:
            return n.target(*args, **kwargs)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            # Kernels of custom operators raise errors of their own, such as those of Triton's compiler.
            result = self._as_in_the_graph(n, n.target)
            self._problems.setdefault(str(n.target), str(error).strip().partition("\n")[0] or described(error))
            return result

    def _as_in_the_graph(self, n: Node, operation: OpOverload) -> Any:
        """Run an operation in its own types."""
        rounded: dict[int, tuple[Tensor, Tensor]] = {}
        """Rounded arguments with their originals, by the id of the rounded one."""

        def narrow(node: Node) -> Any:
            return tree_map(narrow_one, self.env[node], self._dtypes[node])

        def narrow_one(value: Any, kind: Any) -> Any:
            if not isinstance(value, Tensor) or value.dtype == kind:
                return value
            found = value.to(kind)
            rounded[id(found)] = (found, value)
            return found

        args, kwargs = torch.fx.map_arg((n.args, n.kwargs), narrow)
        result = operation(*args, **kwargs)
        if schema_of(operation).is_mutable:
            for found, value in rounded.values():
                value.copy_(found)
        return tree_map_only(
            Tensor, lambda each: rounded[id(each)][1] if id(each) in rounded else widened(each), result
        )


def _layout(layout: StateLayout) -> StateLayout:
    return replace(
        layout,
        parameters={name: _spec(each) for name, each in layout.parameters.items()},
        buffers={name: _spec(each) for name, each in layout.buffers.items()},
        slots={slot: _spec(each) for slot, each in layout.slots.items()},
        accumulation_type=wide(layout.accumulation_type),
    )


def _spec(specification: TensorSpec) -> TensorSpec:
    return replace(specification, dtype=wide(specification.dtype))
