"""Counts the operations of the graphs that torch.compile gives to the card."""

from __future__ import annotations

from types import TracebackType

import torch

from habana_frameworks.torch.dynamo.compile_backend.backends import compiled_operations


class FxGraphAnalyzer:
    """Counts the operations of each graph that ``hpu_backend`` compiles within a block."""

    def __init__(self, reset_dynamo: bool = False, capture_non_hpu_output: bool = False) -> None:
        del capture_non_hpu_output
        self._reset_dynamo = reset_dynamo
        self._graphs: list[dict[str, int]] = []

    def __enter__(self) -> FxGraphAnalyzer:
        if self._reset_dynamo:
            torch.compiler.reset()
        compiled_operations.append(self._graphs.append)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        compiled_operations.remove(self._graphs.append)

    def get_ops_summary(self) -> list[dict[str, tuple[int, int]]]:
        """Return, for each graph, how often each operation is in the graph, and how often it runs outside (never)."""
        return [{name: (count, 0) for name, count in graph.items()} for graph in self._graphs]
