"""Copies of weights between a module and its device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import torch
from torch import Tensor, nn

from pilotage.execution.spread_state import ProgramState
from pilotage.runtime.host import OWNERSHIP, Claim, TrainedWeights
from pilotage.strategies.strategy import Strategy, detached
from pilotage.turns import PROCESS_WIDE, Turn


class WeightKeeper:
    """Keeps a module and the state of its program in sync.

    Weights go to the device when it is attached, when they are sent explicitly, and, for inference, when a training
    program has changed them. Edits on the host do not reach the device in any other way.
    """

    def __init__(self, module: nn.Module, *, trains: bool) -> None:
        self._module = module
        self._trains = trains
        self.trained: TrainedWeights | None = None
        """The host's side of the weights that the program trains; None for inference and while detached."""
        self._seen = 0
        self._device: Callable[[], Mapping[str, Tensor]] = dict
        """Returns all weights and buffers as they are on the device."""
        self._claims: list[Claim] = []
        self._generation = -1
        self._found_turn: Turn | None = None

    @property
    def turn(self) -> Turn:
        """The turn of all executors that train or copy these weights."""
        if self._found_turn is None:
            self._found_turn = OWNERSHIP.turn_of(self._host().values())
        return self._found_turn

    def find_turn_again(self) -> None:
        """Find out again which executors share the module's tensors, some of which may have been replaced."""
        self._found_turn = None

    def attach(self, strategy: Strategy, any_process: Callable[[bool], bool] | None) -> None:
        """Load a freshly attached device, and make the module show what it trains.

        If several processes have a part of the weights each, all of them must fetch together, and ``any_process`` tells
        whether one of them wants to.
        """
        if strategy.state is None:
            raise detached()
        self.send(strategy.state)
        self._device = strategy.weights
        if self._trains:
            self.trained = TrainedWeights(self._host(), self._device, self.turn, any_process)

    def send(self, state: ProgramState) -> None:
        """Send the module's weights and buffers to the device."""
        with self.turn:
            self.fetch_for_reading()
            parameters, buffers = self._tables()
            self._seen = OWNERSHIP.latest(OWNERSHIP.claims_of([*parameters.values(), *buffers.values()]))
            state.load_weights(parameters, buffers)

    @torch.no_grad()
    def send_buffers(self, state: ProgramState, names: Iterable[str]) -> None:
        """Send some of the module's buffers to the device, to every replica."""
        with self.turn:
            self.fetch_for_reading()
            _, host = self._tables()
            state.load_buffers({name: host[name] for name in names})

    def refresh(self, state: ProgramState) -> None:
        """Send the weights again if another training program has changed them since."""
        if self._generation != OWNERSHIP.generation:
            self._look_for_owners(state)
        if self._claims and not self._trains and OWNERSHIP.latest(self._claims) > self._seen:
            self.send(state)

    def _look_for_owners(self, state: ProgramState) -> None:
        """Find out who trains these weights now; a training program that has lost some claims them again."""
        generation = OWNERSHIP.generation
        if self.trained is not None and OWNERSHIP.owners_of(self._host().values()) != [self.trained]:
            self.send(state)
            self.trained.claim()
            generation = OWNERSHIP.generation
        self._claims = OWNERSHIP.claims_of(self._host().values())
        self._generation = generation

    def fetch(self) -> None:
        """Copy the device's weights and buffers to the module."""
        if self.trained is not None:
            self.trained.fetch()
        else:
            with self.turn:
                self._fetch_buffers(self._device())

    def fetch_if_needed(self) -> bool:
        """Copy the device's weights to the module if they are newer; tells whether they were."""
        return self.trained is not None and self.trained.fetch()

    def fetch_for_reading(self) -> None:
        """Fetch the weights of this module from all programs that train them."""
        for owner in OWNERSHIP.owners_of(self._host().values()):
            owner.fetch()

    def detach(self) -> None:
        """Fetch the last weights; the device is about to be freed."""
        if self.trained is not None:
            self.trained.release()
            self.trained = None
        # It would keep the memory of the device alive.
        self._device = dict

    def _host(self) -> dict[str, Tensor]:
        parameters, buffers = self._tables()
        return {**parameters, **buffers}

    def _tables(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        # While it is captured a module has other tensors in its tables.
        with PROCESS_WIDE:
            return dict(self._module.named_parameters()), dict(self._module.named_buffers())

    @torch.no_grad()
    def _fetch_buffers(self, buffers: Mapping[str, Tensor]) -> None:
        for name, buffer in self._module.named_buffers():
            buffer.copy_(buffers[name])
