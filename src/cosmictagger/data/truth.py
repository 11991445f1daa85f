"""The simulation's truth about an event's neutrino."""

from __future__ import annotations

from dataclasses import dataclass

from cosmictagger.data.events import Array

ELECTRON_NEUTRINO, MUON_NEUTRINO = 12, 14
CHARGED_CURRENT, NEUTRAL_CURRENT = 0, 1

NU_E_CC, NU_MU_CC, NC, COSMIC_ONLY = 0, 1, 2, 3
MIN_NEUTRINO_PIXELS = 10
"""An event with fewer neutrino pixels counts as cosmic only."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NeutrinoTruth:
    """The neutrino of an event: the first row of its particles."""

    pdg: int
    current_type: int
    """0 charged current, 1 neutral current."""
    interaction_type: int
    energy: float
    """GeV."""
    vertex: tuple[float, float, float]
    """Centimetres: drift, height, beam."""
    time: float
    """Nanoseconds."""
    pixels: tuple[tuple[int, int], ...] | None = None
    """Row and column of the vertex in each plane's full image; None if the file does not say."""

    @property
    def flavour(self) -> str:
        """Flavour and current in physics notation."""
        name = {ELECTRON_NEUTRINO: "ν_e", MUON_NEUTRINO: "ν_μ"}.get(abs(self.pdg), f"pdg {self.pdg}")
        bar = "anti-" if self.pdg < 0 else ""
        return f"{bar}{name} {'CC' if self.current_type == CHARGED_CURRENT else 'NC'}"


def event_class(truth: NeutrinoTruth | None, neutrino_pixels: int) -> int:
    """The class of an event; antineutrinos count as their flavour."""
    if truth is None or neutrino_pixels < MIN_NEUTRINO_PIXELS:
        return COSMIC_ONLY
    if truth.current_type == NEUTRAL_CURRENT:
        return NC
    return NU_E_CC if abs(truth.pdg) == ELECTRON_NEUTRINO else NU_MU_CC


def truth_from_row(particle: Array, pixels: tuple[tuple[int, int], ...] | None) -> NeutrinoTruth:
    """Convert a row of the particle table."""
    vertex = particle["vtx"]
    return NeutrinoTruth(
        pdg=int(particle["pdg"]),
        current_type=int(particle["current_type"]),
        interaction_type=int(particle["interaction_type"]),
        energy=float(particle["energy_init"]),
        vertex=(float(vertex["x"]), float(vertex["y"]), float(vertex["z"])),
        time=float(vertex["t"]),
        pixels=pixels,
    )
