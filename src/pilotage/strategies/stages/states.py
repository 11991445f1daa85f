"""The state of a program whose stages are on cards of one process."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pilotage.execution.state import DeviceState, Exchange
from pilotage.optim.rule import OptimizerPlan
from pilotage.program.layout import Section, Slot, StateLayout


class StageStates(DeviceState):
    """The state of the first stage, through which that of all stages is seen as one."""

    def __init__(
        self,
        layouts: Sequence[StateLayout],
        plan: OptimizerPlan | None,
        cards: Sequence[torch.device],
        replicas: int,
        exchange: Exchange | None,
    ) -> None:
        self._later: list[DeviceState] = []
        pools = plan is not None
        super().__init__(layouts[0], plan, cards[0], replicas, pools, exchange=exchange)
        for layout, card in zip(layouts[1:], cards[1:], strict=True):
            self._later.append(DeviceState(layout, plan, card, replicas, pools, exchange=exchange))

    @property
    def of_stages(self) -> list[DeviceState]:
        """The state of each stage."""
        return [self, *self._later]

    @property
    def parameters(self) -> dict[str, Tensor]:
        """The weights of all stages by name."""
        return super().parameters | {name: each for state in self._later for name, each in state.parameters.items()}

    @property
    def slots(self) -> dict[Slot, Tensor]:
        """What the optimizer remembers of all stages."""
        return super().slots | {slot: each for state in self._later for slot, each in state.slots.items()}

    def buffers(self, replica: int = 0) -> dict[str, Tensor]:
        """A replica's buffers of all stages by name."""
        own = super().buffers(replica)
        return own | {name: each for state in self._later for name, each in state.buffers(replica).items()}

    def load_values(self, plan: OptimizerPlan) -> None:
        """Take the optimizer's present numbers."""
        super().load_values(plan)
        for state in self._later:
            state.load_values(plan)

    def forget_gradients(self) -> None:
        """Empty the pools of gradients."""
        super().forget_gradients()
        for state in self._later:
            state.forget_gradients()

    @torch.no_grad()
    def hand_on(self) -> None:
        """Let all stages count on from where the first one does."""
        if Section.COUNTERS in self._shared:
            for state in self._later:
                for counter, number in state.counters.items():
                    number.copy_(self.counters[counter])
