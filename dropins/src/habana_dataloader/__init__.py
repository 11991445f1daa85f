"""Habana's data loader without the card: torch's DataLoader, which the vendor's falls back to as well."""

from __future__ import annotations

from habana_dataloader.loader import HabanaDataLoader, fetch_habana_unet_loader

__all__ = ["HabanaDataLoader", "fetch_habana_unet_loader"]
