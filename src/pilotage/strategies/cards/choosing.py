"""Which cards a program may use."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from pilotage.devices.base import Capabilities
from pilotage.errors import OptionError
from pilotage.options import environment


def cards_of(backend: Capabilities, names: Sequence[str] | None) -> tuple[torch.device, ...]:
    """The devices that were named by option or by PILOTAGE_CARDS, else all that the backend sees; its own one is the first."""
    asked_by, names = ("the option cards", names) if names is not None else ("PILOTAGE_CARDS", environment.cards())
    if names is None:
        return backend.devices
    devices = tuple(_device(name, asked_by) for name in names)
    if not devices or devices[0] != backend.device or {device.type for device in devices} != {backend.device.type}:
        raise OptionError(
            f"{asked_by} says {', '.join(names) or 'nothing'}. It has to name devices of the {backend.name} backend, {backend.device} "
            "first. Which cards have these numbers is said by CUDA_VISIBLE_DEVICES."
        )
    there = {*backend.devices}
    for device in devices:
        if device not in there:
            raise OptionError(
                f"{asked_by} names {device}, but there is no such device. Choose among: {', '.join(map(str, backend.devices))}."
            )
    return devices


def are_named(names: Sequence[str] | None) -> bool:
    """Whether somebody has said which devices are to be used."""
    return names is not None or environment.cards() is not None


def _device(name: str, asked_by: str) -> torch.device:
    try:
        return torch.device(name)
    except RuntimeError:
        raise OptionError(
            f"{asked_by} names {name!r}, which is no device. Use names such as 'cuda:0' or 'cpu'."
        ) from None
