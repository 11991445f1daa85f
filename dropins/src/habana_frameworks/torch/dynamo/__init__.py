"""Habana's part of torch.compile."""

from __future__ import annotations
