"""The part of an optimizer's state dictionary that a compiled model fills."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from poptorch._logging import logger

__all__ = ["StateOnDevice"]

_KEYS = ("ipu_state", "ipu_param")


class StateOnDevice(torch.optim.Optimizer):
    """Adds ``ipu_state`` and ``ipu_param`` to a torch optimizer's state dictionary.

    Both are None until a model was compiled with the optimizer. A compiled model calls :meth:`follow` to lend a way
    of reading the device, sets ``ipu_state_is_dirty`` after each update, looks at ``host_state_is_dirty`` before it
    runs, and calls :meth:`stop_following` when another optimizer takes over.
    """

    def __init__(self, params: Any, **settings: Any) -> None:
        super().__init__(params, **settings)
        self._device_state: dict[str, Any] = dict.fromkeys(_KEYS)
        self._read_device: Callable[[], Mapping[str, Any]] | None = None
        self.ipu_state_is_dirty = False
        """Whether the device's state is newer than the host's."""
        self.host_state_is_dirty = False
        """Whether the host has a state that was not sent to the device yet."""
        self._settings_loaded: Any = None
        """The settings that a state dictionary came with, until its values were sent."""

    def has_state(self) -> bool:
        """Whether there is a state of a compiled model."""
        return any(self._device_state[key] is not None for key in _KEYS)

    def get_state_dict(self) -> dict[str, Any]:
        """The host's copy of the device's state."""
        return dict(self._device_state)

    def set_state_dict(self, state: Mapping[str, Any]) -> None:
        """Store a copy of the device's state."""
        self._device_state = {key: state[key] for key in _KEYS}

    def state_dict(self) -> dict[str, Any]:
        """Torch's own state dictionary with the device's state beside it."""
        self._fetch()
        return super().state_dict() | self._device_state

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore a state dictionary that an optimizer of PopTorch has returned."""
        if not state_dict:
            raise RuntimeError("Cannot load optimizer state dictionary because it is empty.")
        if not all(key in state_dict for key in _KEYS):
            raise RuntimeError("Only IPU optimizer states can be loaded onto the IPU.")
        own = {key: value for key, value in state_dict.items() if key not in _KEYS}
        if own:
            super().load_state_dict(own)
        self.set_state_dict(state_dict)
        self.ipu_state_is_dirty = False
        self.host_state_is_dirty = self.has_state()
        self._settings_loaded = self._settings() if self.host_state_is_dirty else None

    @property
    def is_as_loaded(self) -> bool:
        """Whether a loaded state waits for the device, and no setting has changed since."""
        return self._settings_loaded is not None and self._settings_loaded == self._settings()

    def note_sent(self) -> None:
        """Note that the device has the host's state."""
        self.host_state_is_dirty = False
        self._settings_loaded = None

    def follow(self, read_device: Callable[[], Mapping[str, Any]]) -> None:
        """Use this function to read the device's state when it has changed and is needed."""
        self._read_device = read_device

    def forget_device(self) -> None:
        """Do not read the device's state."""
        self._read_device = None
        self.ipu_state_is_dirty = False

    def stop_following(self) -> None:
        """Read the device's state for the last time."""
        self._fetch()
        self._read_device = None

    def __getstate__(self) -> dict[str, Any]:
        self._fetch()
        carried = ("_device_state", "ipu_state_is_dirty", "host_state_is_dirty")
        return super().__getstate__() | {name: getattr(self, name) for name in carried}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Loading a state dictionary calls this too, and must not change the connection to the device.
        self.__dict__.setdefault("_read_device", None)
        self.__dict__.setdefault("_settings_loaded", None)
        super().__setstate__(state)

    def _settings(self) -> list[dict[str, Any]]:
        groups = [{name: value for name, value in group.items() if name != "params"} for group in self.param_groups]
        own = {name: value for name, value in vars(self).items() if isinstance(value, (int, float, torch.dtype))}
        return [own | dict.fromkeys(("ipu_state_is_dirty", "host_state_is_dirty")), *groups]

    def _fetch(self) -> None:
        if self.ipu_state_is_dirty and self._read_device is not None:
            self.set_state_dict(self._read_device())
            self.ipu_state_is_dirty = False
        elif self.has_state():
            logger.debug("Using cached optimiser state dict")
