"""Stages and phases: which blocks of a model run together, and on which IPU."""

from __future__ import annotations

from typing import Self

from poptorch._errors import require

BlockId = str
"""What a block is called: the ``user_id`` of a ``poptorch.Block``."""


class Stage:
    """Blocks that run one after another on the same IPU."""

    def __init__(self, *block_ids: BlockId) -> None:
        for block_id in block_ids:
            require(isinstance(block_id, str), f"Block ids must be strings, not {block_id!r}.")
        self._blocks = list(block_ids)
        self._stage_id = -1
        self._phase_id = -1
        self._ipu: int | None = None

    @property
    def blocks(self) -> list[BlockId]:
        """The ids of its blocks."""
        return self._blocks

    def ipu(self, ipu: int) -> Self:
        """Run the stage on this IPU, whatever its blocks say."""
        require(isinstance(ipu, int), f"An IPU must be a whole number, not {ipu!r}.")
        self._ipu = ipu
        return self

    def __repr__(self) -> str:
        placed = "" if self._ipu is None else f".ipu({self._ipu})"
        return f"Stage({', '.join(map(repr, self._blocks))}){placed}"


class Phase:
    """Stages that run at the same time, on an IPU each."""

    def __init__(self, *arg: BlockId | Stage) -> None:
        if all(isinstance(element, Stage) for element in arg):
            self._stages = [element for element in arg if isinstance(element, Stage)]
        else:
            require(
                all(isinstance(element, str) for element in arg),
                f"A phase must consist only of stages or only of block ids, not {arg!r}.",
            )
            self._stages = [Stage(*(element for element in arg if isinstance(element, str)))]

    @property
    def stages(self) -> list[Stage]:
        """Its stages."""
        return self._stages

    def stage(self, idx: int) -> Stage:
        """Its stage of this index."""
        return self._stages[idx]

    def ipus(self, *ipus: int) -> Self:
        """Run the stages on these IPUs, one for each."""
        require(
            len(ipus) == len(self._stages),
            f"The phase has {len(self._stages)} stages but {len(ipus)} IPUs were given. Give one for each.",
        )
        for stage, ipu in zip(self._stages, ipus, strict=True):
            stage.ipu(ipu)
        return self

    def __repr__(self) -> str:
        return f"Phase({', '.join(map(repr, self._stages))})"
