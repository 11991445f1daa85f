"""The state of the given torch optimizer: shows what the program keeps on its device, and takes over what is changed.

Momentum and the like are on the device while a program trains. ``optimizer.state`` becomes a dictionary that fetches
them when anything touches it, so that ``optimizer.state_dict()`` is complete. What was changed there, loaded or cleared
goes to the device before the next call.
"""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

from pilotage.capture.model import findings_of
from pilotage.errors import OptionError
from pilotage.optim.following import FollowedOptimizer
from pilotage.optim.rule import OptimizerPlan
from pilotage.runtime.following.torch_state import TorchState, from_torch, to_torch
from pilotage.runtime.optimizer_state import refuse_other_slots
from pilotage.runtime.session import Session
from pilotage.runtime.weights import WeightKeeper


class StateOnDevice(defaultdict[Tensor, Any]):
    """An optimizer's state that is fetched from the device when it is touched."""

    def __init__(self, fetch: Callable[[], TorchState]) -> None:
        super().__init__(dict)
        self._fetch = fetch
        self.is_fetched = False
        self._noted: object = None

    def forget(self) -> None:
        """Fetch the state again when it is next touched."""
        super().clear()
        self.is_fetched = False

    @property
    def was_edited(self) -> bool:
        """Whether the user has changed the state since it was fetched."""
        return self.is_fetched and self._versions() != self._noted

    def fill(self) -> None:
        """Fetch the state, unless it was fetched already."""
        if not self.is_fetched:
            fetched = self._fetch()
            self.is_fetched = True
            super().update(fetched)
            self._noted = self._versions()

    def _versions(self) -> object:
        return [(id(key), sorted((name, *_version(each)) for name, each in kept.items())) for key, kept in _items(self)]

    def __reduce__(self) -> Any:
        """A copy, and what is unpickled, is plain."""
        return defaultdict, (dict,), None, None, iter(self.items())


def _filled(name: str) -> Any:
    plain = getattr(defaultdict, name)

    def method(self: StateOnDevice, *args: Any, **kwargs: Any) -> Any:
        self.fill()
        return plain(self, *args, **kwargs)

    method.__name__ = name
    return method


for _name in (
    *("__getitem__", "__setitem__", "__delitem__", "__iter__", "__len__", "__contains__", "__eq__", "__ne__", "__or__"),
    *("__ior__", "__reversed__", "__repr__", "__copy__", "copy", "get", "keys", "values", "items", "pop", "popitem"),
    *("clear", "update", "setdefault"),
):
    setattr(StateOnDevice, _name, _filled(_name))


class FollowedState:
    """Keeps the state of a torch optimizer and that of a program in sync."""

    def __init__(self, optimizer: FollowedOptimizer, module: nn.Module, weights: WeightKeeper) -> None:
        self.settings = optimizer
        """The settings in the optimizer's parameter groups."""
        self.optimizer = optimizer.optimizer
        self._module = module
        self._weights = weights
        self._session: weakref.ref[Session] | None = None
        self._plan: OptimizerPlan | None = None
        self._view: StateOnDevice | None = None

    def exchange(self, session: Session, plan: OptimizerPlan | None) -> None:
        """Apply what the user has changed, before a program starts or runs."""
        if plan is None:
            return
        present, view = self.optimizer.state, self._view
        if view is not None and present is view:
            if view.is_fetched and view.was_edited:
                self._load(session, plan, dict(view))
        elif not isinstance(present, StateOnDevice) and not (view is None and _is_empty(present)):
            self._load(session, plan, present)
        if self._session is None or self._session() is not session:
            self._session = weakref.ref(session)
        self._plan = plan
        # If the optimizer shows another state than this one, it also trains another program.
        if view is None or not isinstance(present, StateOnDevice):
            self._show()

    def expect_change(self) -> None:
        """Note that the device is about to change the state: fetched values become outdated."""
        if self._view is not None and self._view.is_fetched:
            self._view.forget()

    def _show(self) -> None:
        mine = weakref.ref(self)

        def fetch() -> TorchState:
            followed = mine()
            return {} if followed is None else followed._fetched()

        self._view = self.optimizer.state = StateOnDevice(fetch)

    def _fetched(self) -> TorchState:
        session = None if self._session is None else self._session()
        if session is None or self._plan is None:
            return {}
        if session.gather is not None:
            raise OptionError(
                "The state of the optimizer is divided among processes. Call optimizer_state_dict() of the wrapped "
                "model in all of them."
            )
        with self._weights.turn:
            state = session.optimizer_state()
        return {} if state is None else to_torch(state, self._plan, self._parameters(), _unused(session))

    def _load(self, session: Session, plan: OptimizerPlan, given: TorchState) -> None:
        unused = _unused(session)
        slots = {slot: tensor for slot, tensor in session.attached.slots.items() if slot.parameter not in unused}
        state = from_torch(given, plan, self._parameters(), slots.keys(), session.attached.counters)
        refuse_other_slots(state, plan, slots)
        session.set_optimizer_state(state)

    def _parameters(self) -> Mapping[str, Tensor]:
        return dict(self._module.named_parameters())


def _unused(session: Session) -> set[str]:
    """The parameters that the loss does not depend on; torch's optimizers keep no state for them."""
    return {name for findings in findings_of(session.captured) for name in findings.without_gradient}


def _is_empty(state: TorchState) -> bool:
    return not any(isinstance(kept, Tensor) for entries in state.values() for kept in entries.values())


def _items(state: StateOnDevice) -> Any:
    return dict.items(state)


def _version(value: Any) -> tuple[int, int]:
    return id(value), value._version if isinstance(value, Tensor) and not value.is_inference() else 0
