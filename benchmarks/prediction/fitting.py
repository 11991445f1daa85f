"""Constants of a device model from the measurements of `calibrate`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

Row = Mapping[str, Any]


def constants_of(rows: Iterable[Row]) -> dict[str, float]:
    """The best rate of each kind of work, and the shortest times."""
    measured = [row for row in rows if "seconds" in row and row["seconds"] > 0]
    found: dict[str, float] = {}
    for row in measured:
        match row["group"]:
            case "products":
                _keep_best(found, f"products.{row['kind']}", 2 * row["m"] * row["n"] * row["k"] / row["seconds"])
            case "elementwise" if row["name"] == "add":
                place = "cold" if row["cold"] else "hot" if row["bytes"] < 2**23 else "large"
                _keep_best(found, f"bandwidth.{place}", 3 * row["bytes"] / row["seconds"])
            case "host copies" if "bytes" in row:
                _keep_best(
                    found, f"host.{row['name'].replace(', ', '_').replace(' ', '_')}", row["bytes"] / row["seconds"]
                )
    kernels = [row["seconds"] for row in measured if row["group"] == "launches"]
    if kernels:
        found["launch.kernel_seconds"] = median(kernels)
    return found


def lines_of(constants: Mapping[str, float]) -> list[str]:
    """The constants as lines of a file in TOML."""
    return [f"{name} = {value:.4g}" for name, value in constants.items()]


def _keep_best(found: dict[str, float], name: str, value: float) -> None:
    found[name] = max(found.get(name, 0.0), value)
