"""How the stages of a pipeline communicate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from torch import Tensor

from pilotage.strategies.stages.work import StageWork


class Transport(Protocol):
    """Passes data between stages. These calls are collective: every process with a stage must make them."""

    @property
    def local_stages(self) -> range:
        """The stages that this process runs."""
        ...

    def again(self, micro_batches: int) -> Transport:
        """A transport between the same stages for calls with this many micro-batches in each round."""
        ...

    def begin_call(self, works: Sequence[StageWork], inputs: Sequence[Tensor], *, reconnect: bool) -> Sequence[Tensor]:
        """Connect the stages, again after a failed call; returns the inputs that all stages have to use."""
        ...

    def run_round(self, works: Sequence[StageWork]) -> None:
        """Pass one round of micro-batches through all stages, and back if they train."""
        ...

    def gather(self, values: Sequence[float]) -> list[float]:
        """One number for each stage."""
        ...

    def join_outputs(self, own: list[Tensor], *, finite: bool) -> tuple[list[Tensor], bool]:
        """The outputs of all stages, and whether all of them have seen only finite losses."""
        ...

    def join_weights(self, own: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """The weights and buffers of all stages."""
        ...
