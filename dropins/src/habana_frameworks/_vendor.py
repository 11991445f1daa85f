"""Detects the vendor's own package."""

from __future__ import annotations

from importlib import metadata

# Not the media loader: it uses the import name but has no device.
_VENDORS = ("habana-torch-plugin", "habana-frameworks", "intel-gaudi-torch-plugin")


def refuse_beside_vendor_package() -> None:
    """Raise ImportError if the vendor's bridge is installed: it must be used instead."""
    found = [name for name in _VENDORS if any(metadata.distributions(name=name))]
    if found:
        raise ImportError(
            f"{found[0]} is installed here, and habana_frameworks is Pilotage's drop-in, which emulates the card on "
            "the CPU. Uninstall pilotage-dropins, then reinstall the vendor's package: both use the same import name."
        )
