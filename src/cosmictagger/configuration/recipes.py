"""Recipes: the values of ``--config-name``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

GROUPS = {"run": "base_run", "mode": "train", "data": "generated", "framework": "torch", "network": "uresnet"}
"""The default member of each group."""


@dataclass(frozen=True)
class Recipe:
    """The groups and values of a recipe."""

    groups: dict[str, str] = field(default_factory=dict)
    values: dict[str, dict[str, Any]] = field(default_factory=dict)


RECIPES: dict[str, Recipe] = {
    "config": Recipe(),
    "a21": Recipe({"network": "a21", "data": "synthetic"}, {"data": {"downsample": 1}}),
    "a21-deterministic": Recipe(
        {"network": "a21", "data": "real"},
        {
            "data": {"downsample": 1, "seed": 12345},
            "framework": {"seed": 54321},
            "run": {"compute_mode": "GPU", "minibatch_size": 32, "iterations": 5000},
        },
    ),
    "SCC_21": Recipe({"network": "scc21", "data": "real"}, {"data": {"downsample": 0}}),
    "polaris": Recipe({"network": "polaris", "data": "real"}, {"data": {"downsample": 0}}),
    "sn-at": Recipe(
        {"network": "uresnet3d", "data": "real"},
        {
            "data": {"downsample": 0},
            "network": {"depth": 7},
            "run": {"distributed": True, "compute_mode": "GPU"},
        },
    ),
}
