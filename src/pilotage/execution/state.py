"""The tensors that stay on a device between calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import torch
from torch import Tensor

from pilotage.optim.rule import OptimizerPlan
from pilotage.program.layout import Counter, Section, Slot, StateLayout, VariableValue, number_of
from pilotage.program.optimizer_shards import OptimizerShards
from pilotage.program.specification import TensorSpec

WEIGHTS, OPTIMIZER = "weights", "the state of the optimizer"
"""What an interrupted update can leave inconsistent."""

NOTHING: frozenset[str] = frozenset()

Exchange: TypeAlias = Callable[[Tensor], Callable[[], None]]
"""Starts to sum a tensor over all instances, in place; the function it returns waits until that is done."""


@dataclass(frozen=True)
class CardExchange:
    """What recordings of steps need to know about an exchange."""

    is_possible: Callable[[Tensor], bool]
    """Whether the card itself exchanges a tensor, so that a CUDA graph can contain it; after a first exchange."""

    wait: Callable[[Callable[[], bool], float], None]
    """Waits until the card is done, and raises if that takes a timeout longer than the given seconds."""


class DeviceState:
    """Weights, buffers, optimizer state and pooled gradients of a program on one device.

    Replicas that take turns on one device share everything except their buffers.

    Large because steps, strategies, the host's weights and checkpoints each need another view of the same tensors.
    """

    def __init__(
        self,
        layout: StateLayout,
        plan: OptimizerPlan | None,
        device: torch.device,
        replicas: int,
        pools: bool,
        placement: Mapping[str, torch.device] | None = None,
        exchange: Exchange | None = None,
        optimizer_shards: OptimizerShards | None = None,
        first_replica: int = 0,
        card_exchange: CardExchange | None = None,
    ) -> None:
        self.layout = layout
        self.device = device
        self.exchange = exchange
        """Sums the pooled gradients over all instances; None if there is only one, or if the strategy does it."""
        self.card_exchange = card_exchange
        self._begun: list[Callable[[], None]] = []
        self.updates_of_call = 0
        """How many updates the current call has completed."""
        self.torn = NOTHING
        """Parts that an interrupted update may have left inconsistent, and that were not reloaded since.

        An update sets it to `all_parts` before its first write, and to nothing after its last.
        """
        self.optimizer_shards = optimizer_shards
        """Which instance updates which parameter; None if each updates all of them."""
        places = defaultdict(lambda: device, placement or {})
        self._buffers = {
            first_replica + number: _empty_at(layout, Section.BUFFERS, places) for number in range(replicas)
        }
        self._shared = {Section.PARAMETERS: _empty_at(layout, Section.PARAMETERS, places)}
        self._groups = layout.replica_groups
        self.flat_gradients = torch.zeros(0, device=device)
        """All pooled gradients in one buffer."""
        if plan is not None:
            self._start_optimizer(plan, pools)
        self._arguments: dict[tuple[tuple[Section, ...], int, bool], list[Tensor]] = {}

    @property
    def replicas(self) -> Collection[int]:
        """The replicas that run on this device."""
        return self._buffers.keys()

    @property
    def parameters(self) -> dict[str, Tensor]:
        """The weights by name."""
        return dict(zip(self.layout.parameters, self._shared[Section.PARAMETERS], strict=True))

    @property
    def slots(self) -> dict[Slot, Tensor]:
        """What the optimizer keeps for each parameter."""
        return dict(zip(self.layout.slots, self._shared.get(Section.SLOTS, []), strict=True))

    @property
    def counter(self) -> Tensor:
        """The number of updates done."""
        return self.counters[Counter.UPDATES]

    @property
    def counters(self) -> dict[Counter, Tensor]:
        """What the program counts."""
        return dict(zip(self.layout.counters, self._shared[Section.COUNTERS], strict=True))

    @property
    def values(self) -> dict[VariableValue, Tensor]:
        """The optimizer's variable values, such as the learning rate."""
        return dict(zip(self.layout.values, self._shared.get(Section.VALUES, []), strict=True))

    @property
    def pools(self) -> dict[str, Tensor]:
        """The pooled gradient of each parameter, a view of the flat buffer."""
        return dict(zip(self.layout.trained, self._shared[Section.GRADIENTS], strict=True))

    def buffers(self, replica: int = 0) -> dict[str, Tensor]:
        """A replica's buffers by name."""
        return dict(zip(self.layout.buffers, self._buffers[replica], strict=True))

    def arguments(self, sections: tuple[Section, ...], replica: int, *, whole: bool = False) -> list[Tensor]:
        """The state arguments of a step, in order: those of one replica, or all copies of grouped parameters."""
        key = (sections, replica, whole)
        if key not in self._arguments:
            self._arguments[key] = [
                tensor for section in sections for tensor in self._section(section, replica, whole=whole)
            ]
        return self._arguments[key]

    @torch.no_grad()
    def load_weights(self, parameters: Mapping[str, Tensor], buffers: Mapping[str, Tensor]) -> None:
        """Copy weights and buffers from the host; all replicas get the same buffers."""
        _copy(self.parameters, parameters)
        self.load_buffers(buffers)
        self.repair(WEIGHTS)

    @torch.no_grad()
    def load_parameters(self, parameters: Mapping[str, Tensor]) -> None:
        """Copy some parameters from the host; those of other devices are skipped."""
        _copy({name: tensor for name, tensor in self.parameters.items() if name in parameters}, parameters)

    @torch.no_grad()
    def load_buffers(self, buffers: Mapping[str, Tensor]) -> None:
        """Copy some or all buffers from the host to every replica; buffers of other devices are skipped."""
        for replica in self._buffers:
            _copy({name: buffer for name, buffer in self.buffers(replica).items() if name in buffers}, buffers)

    @torch.no_grad()
    def load_values(self, plan: OptimizerPlan) -> None:
        """Copy the optimizer's current values."""
        for value, tensor in self.values.items():
            tensor.fill_(number_of(plan, value))

    def repair(self, part: str) -> None:
        """Note that a part of the state was loaded again."""
        self.torn -= {part}

    @cached_property
    def all_parts(self) -> frozenset[str]:
        """What an update changes."""
        return frozenset({WEIGHTS, OPTIMIZER} if self.slots else {WEIGHTS})

    @cached_property
    def updated(self) -> list[Tensor]:
        """The tensors that updates write to."""
        sections = (Section.PARAMETERS, Section.SLOTS, Section.COUNTERS)
        return [tensor for section in sections for tensor in self._shared.get(section, [])]

    def everything(self) -> list[Tensor]:
        """All tensors that a call may change."""
        return [*self.updated, *(buffer for buffers in self._buffers.values() for buffer in buffers)]

    def refresh_copies(self) -> None:
        """Refresh copies of weights, slots and counters after an outside write; one device has none."""

    @torch.no_grad()
    def forget_gradients(self) -> None:
        """Clear the pooled gradients."""
        self._begun = []
        self.flat_gradients.zero_()
        if Section.COUNTERS in self._shared and Counter.POOLED in self.counters:
            self.counters[Counter.POOLED].zero_()

    def exchange_gradients(self) -> None:
        """Sum the pooled gradients over all instances; waits for what `begin_exchange` has started."""
        if self.exchange is not None and not self._begun:
            self._begun.append(self.exchange(self.flat_gradients))
        begun, self._begun = self._begun, []
        for wait in begun:
            wait()

    def begin_exchange(self, part: slice) -> None:
        """Start to sum a part of the pooled gradients over all instances."""
        assert self.exchange is not None
        self._begun.append(self.exchange(self.flat_gradients[part]))

    def exchange_updates(self) -> None:
        """Send every instance the weights that the others have updated."""
        if self.optimizer_shards is not None:
            self.optimizer_shards.broadcast_updates(self.parameters)

    def _section(self, section: Section, replica: int, *, whole: bool) -> Sequence[Tensor]:
        if section is Section.BUFFERS:
            return self._buffers[replica]
        tensors, owners = self._shared[section], self.layout.owners(section)
        if whole or not owners:
            return tensors
        return [
            tensor[self._groups[name].of_replica[replica]] if name in self._groups else tensor
            for name, tensor in zip(owners, tensors, strict=True)
        ]

    def _start_optimizer(self, plan: OptimizerPlan, pools: bool) -> None:
        self._shared[Section.SLOTS] = _fresh_slots(self.layout, plan, self.parameters)
        self._shared[Section.COUNTERS] = [
            torch.full((), counter.initial, dtype=torch.float64, device=self.device) for counter in self.layout.counters
        ]
        self._shared[Section.VALUES] = _empty(self.layout, Section.VALUES, self.device)
        if pools:
            pieces = self.layout.section(Section.GRADIENTS, whole=True)
            total = sum(piece.elements for piece in pieces)
            self.flat_gradients = torch.zeros(total, dtype=self.layout.accumulation_type, device=self.device)
            self._shared[Section.GRADIENTS] = _pieces(self.flat_gradients, pieces)
        self.load_values(plan)


def _empty(layout: StateLayout, section: Section, device: torch.device) -> list[Tensor]:
    return [specification.empty(device) for specification in layout.section(section, whole=True)]


def _empty_at(layout: StateLayout, section: Section, places: Mapping[str, torch.device]) -> list[Tensor]:
    """Uninitialised weights or buffers, each on its device."""
    names = layout.buffers if section is Section.BUFFERS else layout.parameters
    specifications = layout.section(section, whole=True)
    return [specification.empty(places[name]) for name, specification in zip(names, specifications, strict=True)]


def _fresh_slots(layout: StateLayout, plan: OptimizerPlan, parameters: Mapping[str, Tensor]) -> list[Tensor]:
    rules = {name: group.rule for group in plan.groups for name in group.parameters}
    fresh = []
    for slot in layout.slots:
        tensor = rules[slot.parameter].initial(slot.name, parameters[slot.parameter])
        fresh.append(_on_host(tensor) if layout.is_on_host(slot) else tensor)
    return fresh


def _on_host(tensor: Tensor) -> Tensor:
    """A copy in the host's memory, pinned if a card has to fetch it."""
    return torch.empty_like(tensor, device="cpu", pin_memory=tensor.is_cuda).copy_(tensor)


def _pieces(flat: Tensor, specifications: Sequence[TensorSpec]) -> list[Tensor]:
    pieces, start = [], 0
    for specification in specifications:
        pieces.append(flat.as_strided(specification.shape, specification.stride, start))
        start += specification.elements
    return pieces


def _copy(targets: Mapping[str, Tensor], sources: Mapping[str, Tensor]) -> None:
    for name, target in targets.items():
        target.copy_(sources[name].detach())
