"""Models of devices as data: each file in TOML describes one kind, and users can add their own."""

from __future__ import annotations

from pilotage.prediction.devices.model import DeviceModel
from pilotage.prediction.devices.reading import device_model, known_models
from pilotage.prediction.devices.smaller import with_tiles

__all__ = ["DeviceModel", "device_model", "known_models", "with_tiles"]
