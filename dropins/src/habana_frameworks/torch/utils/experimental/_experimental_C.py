"""The generations of the card."""

from __future__ import annotations

from enum import Enum


class synDeviceType(Enum):
    """The generations of the card."""

    synDeviceGaudi = 1
    synDeviceGaudi2 = 4
    synDeviceGaudi3 = 5


synDeviceGaudi = synDeviceType.synDeviceGaudi
synDeviceGaudi2 = synDeviceType.synDeviceGaudi2
synDeviceGaudi3 = synDeviceType.synDeviceGaudi3
