"""Weights on their way between a module and a device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import torch
from torch import Tensor, nn

from pilotage.backends.state import DeviceState
from pilotage.runtime.host import OWNERSHIP, Claim, TrainedWeights


class WeightKeeper:
    """Keeps a module and the state of its program in step.

    Weights go to the device when it is attached, when they are sent explicitly, and, for inference, when a training
    program has changed them. Edits on the host reach the device in no other way.
    """

    def __init__(self, module: nn.Module, *, trains: bool) -> None:
        self._module = module
        self._trains = trains
        self._trained: TrainedWeights | None = None
        self._seen = 0
        self._device: Callable[[], Mapping[str, Tensor]] = dict
        """Gives all weights and buffers as they are on the device."""
        self._claims: list[Claim] = []
        self._generation = -1

    def take_over(
        self,
        state: DeviceState,
        whole: Callable[[], Mapping[str, Tensor]] | None = None,
        any_process: Callable[[bool], bool] | None = None,
    ) -> None:
        """Load a freshly attached device, and let the module show what it trains.

        Where the device has only some of the weights, ``whole`` brings all of them together. All processes that have the rest then
        have to ask for them, and ``any_process`` tells whether one of them wants to.
        """
        self.send(state)
        self._device = whole or (lambda: {**state.parameters, **state.buffers()})
        if self._trains:
            self._trained = TrainedWeights(self._host(), self._device, any_process)

    def send(self, state: DeviceState) -> None:
        """Send the module's weights and buffers to the device."""
        self.fetch_for_reading()
        state.load_weights(dict(self._module.named_parameters()), dict(self._module.named_buffers()))
        self._seen = OWNERSHIP.latest(OWNERSHIP.claims_of(self._host().values()))

    @torch.no_grad()
    def send_buffers(self, state: DeviceState, names: Iterable[str]) -> None:
        """Send some of the module's buffers to the device, to every replica."""
        self.fetch_for_reading()
        host = dict(self._module.named_buffers())
        state.load_buffers({name: host[name] for name in names})

    def refresh(self, state: DeviceState) -> None:
        """Send the weights again if another training program has changed them since."""
        if self._generation != OWNERSHIP.generation:
            self._look_again(state)
        if self._claims and not self._trains and OWNERSHIP.latest(self._claims) > self._seen:
            self.send(state)

    def _look_again(self, state: DeviceState) -> None:
        """Find out who trains these weights by now; a training program that has lost some takes them back."""
        if self._trained is not None and OWNERSHIP.owners_of(self._host().values()) != [self._trained]:
            self.send(state)
            self._trained.claim()
        self._claims = OWNERSHIP.claims_of(self._host().values())
        self._generation = OWNERSHIP.generation

    def note_change(self, *, in_failure: bool = False) -> None:
        """The device has changed its weights, or some of them before a call failed."""
        if self._trained is not None:
            self._trained.changed(in_failure=in_failure)

    def fetch(self) -> None:
        """Bring the device's weights and buffers to the module."""
        if self._trained is not None:
            self._trained.fetch()
        else:
            self._fetch_buffers(self._device())

    def fetch_if_needed(self) -> bool:
        """Bring the device's weights home if they are newer; tells whether they were."""
        return self._trained is not None and self._trained.fetch()

    def fetch_for_reading(self) -> None:
        """Bring home whatever any training program has on its device of this module."""
        for owner in OWNERSHIP.owners_of(self._host().values()):
            owner.fetch()

    def let_go(self) -> None:
        """Bring the last weights home; the device is about to go."""
        if self._trained is not None:
            self._trained.release()
            self._trained = None
        # Holds the memory of the device.
        self._device = dict

    def _host(self) -> dict[str, Tensor]:
        return {**dict(self._module.named_parameters()), **dict(self._module.named_buffers())}

    @torch.no_grad()
    def _fetch_buffers(self, buffers: Mapping[str, Tensor]) -> None:
        for name, buffer in self._module.named_buffers():
            buffer.copy_(buffers[name])
