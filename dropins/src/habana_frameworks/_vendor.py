"""Whose software is installed under Habana's name."""

from __future__ import annotations

from importlib import metadata

# Not the media loader: it uses the import name without bringing a device.
_VENDORS = ("habana-torch-plugin", "habana-frameworks", "intel-gaudi-torch-plugin")


def refuse_beside_the_vendors_own() -> None:
    """Raise where the vendor's bridge is installed, which must be the one that runs."""
    found = [name for name in _VENDORS if any(metadata.distributions(name=name))]
    if found:
        raise ImportError(
            f"{found[0]} is installed here, and habana_frameworks is Pilotage's drop-in, which emulates the card on the "
            "CPU. Uninstall pilotage-dropins, then reinstall the vendor's package, since both write under the same name."
        )
