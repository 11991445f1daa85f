"""Habana's import name over Pilotage: scripts written for Gaudi run without the card, on an emulated device ``hpu``.

Where the vendor's own software is installed this package refuses to be imported: see ``docs/gaudi.md``.
"""

from __future__ import annotations

from pkgutil import extend_path

from habana_frameworks import _vendor

__all__: list[str] = []

_vendor.refuse_beside_vendor_package()

# The vendor's media loader installs packages under this name.
__path__ = extend_path(__path__, __name__)
