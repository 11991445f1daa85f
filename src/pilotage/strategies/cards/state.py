"""The same state on several cards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from pilotage.execution.state import DeviceState, Exchange
from pilotage.optim.rule import OptimizerPlan
from pilotage.program.layout import Counter, Section, StateLayout


class CardStates(DeviceState):
    """The state on the first card, which is the one that others see, and an equal copy on every other card.

    Buffers belong to replicas: each card has those of its own.
    """

    def __init__(
        self,
        layout: StateLayout,
        plan: OptimizerPlan | None,
        cards: Sequence[torch.device],
        replicas: int,
        pools: bool,
        between_instances: Exchange | None = None,
    ) -> None:
        self._copies: list[DeviceState] = []
        each = replicas // len(cards)
        super().__init__(layout, plan, cards[0], each, pools)
        self.between_instances = between_instances
        """Adds up the gradients of all cards over all instances; None where there is one."""
        for number, card in enumerate(cards[1:], start=1):
            self._copies.append(DeviceState(layout, plan, card, each, pools, first_replica=number * each))

    @property
    def of_cards(self) -> list[DeviceState]:
        """The state of each card."""
        return [self, *self._copies]

    @property
    def torn(self) -> frozenset[str]:
        """What an update that was broken off may have left half done, on any card."""
        return self._torn.union(*(copy.torn for copy in self._copies))

    def repair(self, part: str) -> None:
        """Told that a part of the state was loaded again, and handed on."""
        super().repair(part)
        for copy in self._copies:
            copy.repair(part)

    def buffers(self, replica: int = 0) -> dict[str, Tensor]:
        """A replica's buffers by name, on its own card."""
        if replica in self._buffers:
            return super().buffers(replica)
        return next(copy.buffers(replica) for copy in self._copies if replica in copy._buffers)

    def load_weights(self, parameters: Mapping[str, Tensor], buffers: Mapping[str, Tensor]) -> None:
        """Take weights and buffers from the host; all replicas get the same buffers."""
        super().load_weights(parameters, buffers)
        for copy in self._copies:
            # The buffers are there already.
            copy.load_weights(parameters, {})

    def load_buffers(self, buffers: Mapping[str, Tensor]) -> None:
        """Take some or all buffers from the host, for all replicas alike."""
        super().load_buffers(buffers)
        for copy in self._copies:
            copy.load_buffers(buffers)

    def load_values(self, plan: OptimizerPlan) -> None:
        """Take the optimizer's present numbers."""
        super().load_values(plan)
        for copy in self._copies:
            copy.load_values(plan)

    def forget_gradients(self) -> None:
        """Empty the pools of gradients."""
        super().forget_gradients()
        for copy in self._copies:
            copy.forget_gradients()

    @torch.no_grad()
    def hand_on(self) -> None:
        """Let all cards have the first one's weights, slots and counters."""
        sections = tuple(section for section in _EQUAL if section in self._shared)
        for copy in self._copies:
            for target, source in zip(
                copy.arguments(sections, 0, whole=True), self.arguments(sections, 0, whole=True), strict=True
            ):
                target.copy_(source)

    @property
    def means(self) -> list[Tensor]:
        """The pooled gradients of which each card has a mean of its own; groups of replicas have sums."""
        if Section.COUNTERS not in self._shared or Counter.POOLED not in self.counters:
            return []
        return [pool for name, pool in self.pools.items() if name not in self.layout.groups]


_EQUAL = (Section.PARAMETERS, Section.SLOTS, Section.COUNTERS)
