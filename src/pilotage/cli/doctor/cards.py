"""Accelerators that torch can use, compared with the cards in the machine."""

from __future__ import annotations

import warnings
from collections import Counter
from types import ModuleType

from pilotage.cli.doctor.finding import Finding, Verdict
from pilotage.cli.doctor.machine import accelerator
from pilotage.monitoring.plurals import pluralized

__all__ = ["examine_cuda", "examine_gaudi", "examine_ipu"]

GIBIBYTE = 2**30


def examine_cuda(torch: ModuleType | None, present: int) -> Finding:
    """List the CUDA cards, or explain why torch cannot use them."""
    if torch is None:
        return accelerator("CUDA", present)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        is_usable = torch.cuda.is_available()
    if is_usable:
        return _list_cuda_cards(torch)
    if not present:
        return accelerator("CUDA", 0)
    if torch.version.cuda is None:
        remedy = "This build of torch cannot use them. Install a CUDA build of torch."
    else:
        reason = str(caught[0].message).splitlines()[0] if caught else "no reason given"
        remedy = f"torch is built for CUDA {torch.version.cuda} and cannot use them ({reason}). Check nvidia-smi."
    return _unusable("CUDA", present, remedy)


def examine_gaudi(torch: ModuleType | None, present: int) -> Finding:
    """List the Gaudi cards, or explain why torch cannot use them."""
    hpu = getattr(torch, "hpu", None)
    if hpu is not None and hpu.is_available():
        count = hpu.device_count()
        names = [str(hpu.get_device_name(index)) for index in range(count)]
        return Finding(name="Gaudi", value=_tally(names), facts={"count": count, "reached": True})
    if torch is None or not present:
        return accelerator("Gaudi", present)
    return _unusable("Gaudi", present, "torch has no hpu device. Install Intel's Gaudi build and plug-in of torch.")


def examine_ipu(present: int) -> Finding:
    """Count the IPUs, which Pilotage cannot use."""
    if not present:
        return accelerator("IPU", 0)
    remedy = "Pilotage runs IPU programs on other devices; only Graphcore's SDK can use these cards."
    return _unusable("IPU", present, remedy)


def _list_cuda_cards(torch: ModuleType) -> Finding:
    cards = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
    names = [f"{c.name} ({c.total_memory / GIBIBYTE:.0f} GiB, compute capability {c.major}.{c.minor})" for c in cards]
    facts = {"count": len(cards), "reached": True, "memory": sum(card.total_memory for card in cards)}
    return Finding(name="CUDA", value=_tally(names), facts=facts)


def _unusable(name: str, count: int, remedy: str) -> Finding:
    value = f"{pluralized(count, 'card')}, not usable"
    facts = {"count": count, "reached": False}
    return Finding(name=name, value=value, verdict=Verdict.WARNING, remedy=remedy, facts=facts)


def _tally(names: list[str]) -> str:
    return ", ".join(f"{count} × {name}" if count > 1 else name for name, count in Counter(names).items())
