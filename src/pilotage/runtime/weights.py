"""Copies of weights between a module and its device."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

import torch
from torch import Tensor, nn

from pilotage.events import Listener, Warned
from pilotage.execution.spread_state import ProgramState
from pilotage.runtime.following.versions import HostVersions
from pilotage.runtime.host import OWNERSHIP, Claim, TrainedWeights
from pilotage.strategies.strategy import Strategy, detached
from pilotage.torch_private import DisableTorchFunctionSubclass
from pilotage.turns import PROCESS_WIDE, Turn


class WeightKeeper:
    """Keeps a module and the state of its program in sync.

    Weights go to the device when it is attached, when they are sent explicitly, and, for inference, when a training
    program has changed them. With ``sends_edits``, what the user writes to on the host goes there before the next call.

    Large because every way of copying weights between a module and its device is here.
    """

    def __init__(self, module: nn.Module, tell: Listener, *, trains: bool, sends_edits: bool = False) -> None:
        self._module = module
        self._clipping = _Clipping(tell, remedy=_CLIP_BY_OPTION if sends_edits else _CLIP_BY_HOOK)
        self._trains = trains
        self._sends_edits = sends_edits
        self._versions = HostVersions()
        self.trained: TrainedWeights | None = None
        """The host's side of the weights that the program trains; None for inference and while detached."""
        self._seen = 0
        self._device: Callable[[], Mapping[str, Tensor]] = dict
        """Returns all weights and buffers as they are on the device."""
        self._claims: list[Claim] = []
        self._generation = -1
        self._found_turn: Turn | None = None
        self.read_by: Callable[[], object] | None = None
        """A drop-in's callback for reads of weights that are newer on the device."""

    @property
    def turn(self) -> Turn:
        """The turn of all executors that train or copy these weights."""
        if self._found_turn is None:
            self._found_turn = OWNERSHIP.turn_of(self._host().values())
        return self._found_turn

    def find_turn_again(self) -> None:
        """Find out again which executors share the module's tensors, because some tensors may have been replaced."""
        self._found_turn = None

    def attach(self, strategy: Strategy, any_process: Callable[[bool], bool] | None) -> None:
        """Load a freshly attached device, and make the module show what it trains.

        If several processes have a part of the weights each, all of them must fetch together, and ``any_process``
        returns whether one of them needs to.
        """
        if strategy.state is None:
            raise detached()
        host = self.send(strategy.state)
        self._device = strategy.weights
        if self._trains:
            self.trained = TrainedWeights(
                host,
                self._device,
                self.turn,
                any_process,
                copied=self._versions.note,
                clipped=self._clipping.report,
            )
            self.trained.read_by = self.read_by

    def send(self, state: ProgramState) -> Mapping[str, Tensor]:
        """Send the module's weights and buffers to the device; returns them by name."""
        with self.turn:
            parameters, buffers = self._tables()
            host = {**parameters, **buffers}
            _fetch_from_owners(host.values())
            self._seen = OWNERSHIP.latest(OWNERSHIP.claims_of(host.values()))
            state.load_weights(parameters, buffers)
            self._versions.follow(host)
            return host

    def forget_newer(self) -> bool:
        """Drop the device's values if they are newer than the host's; returns whether they were."""
        with self.turn:
            newer = self.trained is not None and self.trained.stale
            if self.trained is not None and newer:
                self.trained.discard()
            return newer

    def is_current(self) -> None:
        """Note that the host has the device's weights, however they got there."""
        self._versions.note()

    def unsent_edits(self) -> list[str]:
        """Some weights that the user has written to since they were sent or fetched, if any; not all at every call.

        Trained weights that nothing has touched need no check.
        """
        if self._device is dict:
            # Detached: all of them are sent when the program is attached again.
            return []
        if self._generation != OWNERSHIP.generation or (self.trained is None and self._claims):
            # What another program has written to these weights is not an edit.
            return []
        return self._versions.some_edited()

    @torch.no_grad()
    def _send_edits(self, state: ProgramState) -> bool:
        """Send what the user has written to on the host; returns whether there was anything."""
        edited = self._versions.edited()
        if self.trained is not None and not state.torn:
            edited += self._uncounted_edits(state, self.trained, edited)
        if not edited:
            return False
        parameters, buffers = self._tables()
        # Not every kernel counts its writes: batch norm counts that to its number of batches only.
        touched = {name.rpartition(".")[0] for name in edited if name in buffers}
        if parameters.keys() <= set(edited) and not (self.trained is not None and self.trained.stale):
            # A whole load, as by load_state_dict(), also repairs what an interrupted update has left.
            self.send(state)
            return True
        # Only the edited ones: buffers of replicas may differ. They are newer than the device's, so nothing is fetched.
        with self.turn, DisableTorchFunctionSubclass():
            state.load_parameters({name: parameters[name] for name in edited if name in parameters})
            state.load_buffers({name: each for name, each in buffers.items() if name.rpartition(".")[0] in touched})
            self._versions.note()
        return True

    def _uncounted_edits(self, state: ProgramState, trained: TrainedWeights, counted: Collection[str]) -> list[str]:
        """Weights that were written to after they were read, in a way that torch does not count, such as ``.data``.

        Only on a processor, where comparing the values costs less than reading them did.
        """
        host = self._host()
        with DisableTorchFunctionSubclass():
            return [
                name
                for name, tensor in {**state.parameters, **state.buffers()}.items()
                if name in trained.current
                and name not in counted
                and tensor.device.type == "cpu"
                and not torch.equal(host[name], tensor)
            ]

    @torch.no_grad()
    def send_buffers(self, state: ProgramState, names: Iterable[str]) -> None:
        """Send some of the module's buffers to the device, to every replica."""
        with self.turn:
            self.fetch_for_reading()
            _, host = self._tables()
            sent = {name: host[name] for name in names}
            state.load_buffers(sent)
            self._versions.note_some(sent.keys())

    def refresh(self, state: ProgramState) -> bool:
        """Send what another training program or the user has changed since; returns whether the user has."""
        if self._generation != OWNERSHIP.generation:
            self._look_for_owners(state)
        if self._claims and not self._trains and OWNERSHIP.latest(self._claims) > self._seen:
            self.send(state)
        if not self._sends_edits or (self.trained is not None and self.trained.is_untouched):
            return False
        return self._send_edits(state)

    def _look_for_owners(self, state: ProgramState) -> None:
        """Find out which program trains these weights now; a training program that has lost some claims them again."""
        generation, host = OWNERSHIP.generation, self._host().values()
        if self.trained is not None and OWNERSHIP.owners_of(host) != [self.trained]:
            self.send(state)
            self.trained.claim()
            generation = OWNERSHIP.generation
        self._claims = OWNERSHIP.claims_of(host)
        self._generation = generation

    @property
    def are_trained_elsewhere(self) -> bool:
        """Whether another program trains these weights."""
        return self.trained is None and bool(OWNERSHIP.claims_of(self._host().values()))

    def fetch(self) -> None:
        """Copy the device's weights and buffers to the module."""
        if self.trained is not None:
            self.trained.fetch()
        else:
            with self.turn:
                self._fetch_buffers(self._device())

    def show_buffers(self) -> None:
        """Let the module show buffers that inference has written, as after a call in eager PyTorch."""
        if self._sends_edits:
            with self.turn:
                self._fetch_buffers(self._device())

    def fetch_if_needed(self) -> bool:
        """Copy the device's weights to the module if they are newer; returns whether they were."""
        return self.trained is not None and self.trained.fetch()

    def fetch_for_reading(self) -> None:
        """Fetch the weights of this module from all programs that train them."""
        _fetch_from_owners(self._host().values())

    def detach(self) -> None:
        """Fetch the last weights; the device is about to be freed."""
        if self.trained is not None:
            self.trained.release()
            self.trained = None
        # Otherwise it keeps the memory of the device allocated.
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
        self._versions.note()


def _fetch_from_owners(host: Iterable[Tensor]) -> None:
    """Fetch tensors of the host from all programs that train them."""
    for owner in OWNERSHIP.owners_of(host):
        owner.fetch_when_read()


_CLIP_BY_OPTION = "pass clip_grad_norm= or clip_grad_value= to pilotage.training."
_CLIP_BY_HOOK = "register a hook on each parameter: parameter.register_hook(lambda gradient: gradient.clamp(-1, 1))."


class _Clipping:
    """Warns once that gradients are clipped on the host; holds nothing that a deleted model would have to free."""

    def __init__(self, tell: Listener, *, remedy: str) -> None:
        self._tell = tell
        self._remedy = remedy
        self._is_told = False

    def report(self) -> None:
        """Warn at the first call."""
        if not self._is_told:
            self._is_told = True
            self._tell(
                Warned(
                    message="clip_grad_norm_() has no effect: a program computes gradients and updates on its device, "
                    f"and on the host .grad is None. To clip gradients in the program, {self._remedy}"
                )
            )
