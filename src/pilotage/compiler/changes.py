"""Which of our changes a compilation makes: rewrites of the graph, and settings and lowerings of Inductor.

They make code faster, and none of them is required. If one of them fails, the graph is compiled without it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

STORED_SCALARS = "stored scalars"
"""Scalars that many elements share are computed once."""

LAYOUTS = "memory layouts"
"""We choose the memory layout ourselves, by timing whole steps."""

BLOCK_SIZES = "block sizes"
"""On a card, more block sizes are tried for each kernel."""

SMALL_TABLES = "gradients of small tables"
"""On a card, gradients of small embedding tables are matrix products."""

JOINED_KERNELS = "joined kernels"
"""Kernels for a processor are compiled together."""

FUSED_BATCH_NORM = "fused batch norm"
"""On a processor, Inductor computes batch normalisation together with its neighbours; torch's own kernel adds in double
precision, and is several times more exact."""


class ChangeFailed(Exception):
    """One of our changes raised an error, which is the cause of this one."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@dataclass
class Changes:
    """What one compilation may change, and what it has changed."""

    without: frozenset[str] = frozenset()
    """The names of changes that are not made."""

    is_cautious: bool = False
    """Whether Inductor leaves out its own optimizations that fail most often."""

    made: list[str] = field(default_factory=list)
    """The names of those that had an effect, or may have had one."""

    def allow(self, name: str) -> bool:
        """Whether a change may be made; notes that it is."""
        if name in self.without:
            return False
        if name not in self.made:
            self.made.append(name)
        return True

    def make(self, name: str, change: Callable[[], Any], effect: Callable[[], object]) -> None:
        """Make a change unless it is excluded, and note it if ``effect`` differs afterwards."""
        if name in self.without:
            return
        before = effect()
        try:
            change()
        except Exception as error:
            raise ChangeFailed(name) from error
        if effect() != before:
            self.made.append(name)
