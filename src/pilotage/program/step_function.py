"""The protocol of a program's steps as Python functions of flat tensors."""

from __future__ import annotations

from typing import ClassVar, Protocol

from torch import Tensor

from pilotage.program.layout import Section, StateLayout
from pilotage.program.structure import Structure

NOT_FINITE = "Pilotage found a loss that is not finite"
"""The error of a step whose loss is NaN or infinite."""


class StepFindings(Protocol):
    """What running a module's forward shows about its outputs."""

    @property
    def outputs(self) -> Structure | None:
        """The structure of the outputs; None before the first run."""
        ...

    @property
    def constant_outputs(self) -> tuple[int, ...]:
        """Outputs that are the same in every run."""
        ...


class StepFunction(Protocol):
    """A step: takes the tensors of its sections, then a micro-batch, and returns outputs."""

    sections: ClassVar[tuple[Section, ...]]

    @property
    def layout(self) -> StateLayout:
        """The layout of the state."""
        ...

    @property
    def findings(self) -> StepFindings:
        """What running the module's forward has shown."""
        ...

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        """Run the step; state is changed in place."""
        ...
