"""Packages with a vendor's import name: our drop-ins, the vendor's SDK, or something else."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from pilotage.cli.doctor.finding import Finding, Verdict

__all__ = ["examine_drop_in", "examine_habana", "examine_plug_ins"]

DROP_INS = "pilotage-dropins"
HABANA = ("habana-torch-plugin", "habana-frameworks", "intel-gaudi-torch-plugin")
PLUG_INS = ("torch_xla", "torch_npu", "intel_extension_for_pytorch")
IMPORTS_PILOTAGE = re.compile(r"^(from|import) pilotage\b", re.MULTILINE)


def examine_drop_in(name: str, maker: str) -> Finding:
    """Find out whose package `import NAME` imports."""
    folder = find_package(name)
    if folder is None:
        return _absent(name)
    if is_ours(folder):
        return Finding(name=name, value=f"Pilotage's drop-in at {folder}", facts=_facts("pilotage", folder))
    value, facts = f"not Pilotage's, perhaps {maker}'s, at {folder}", _facts("other", folder)
    if not any(metadata.distributions(name=DROP_INS)):
        return Finding(name=name, value=value, facts=facts)
    remedy = f"It hides Pilotage's drop-in: `import {name}` does not run Pilotage. Uninstall it or {DROP_INS}."
    return Finding(name=name, value=value, verdict=Verdict.WARNING, remedy=remedy, facts=facts)


def examine_habana() -> Finding:
    """Tell Intel's Gaudi software from the empty namespace package of its media loader."""
    name = "habana_frameworks"
    folder = find_package(name)
    if folder is None:
        return _absent(name)
    if not any((each / "torch").is_dir() for each in _folders_of(name)):
        value = f"an empty namespace without habana_frameworks.torch at {folder}"
        return Finding(name=name, value=value, verdict=Verdict.ABSENT, facts=_facts("namespace", folder))
    finding = examine_drop_in(name, "Intel")
    vendors = next((each for each in HABANA if any(metadata.distributions(name=each))), None)
    if vendors is None or finding.facts["maker"] != "pilotage":
        return finding
    remedy = f"It cannot be imported alongside Intel's {vendors}. Uninstall {DROP_INS}, then reinstall Intel's package."
    return replace(finding, verdict=Verdict.WARNING, remedy=remedy)


def examine_plug_ins() -> Finding:
    """List the device plug-ins of torch: known ones, and those that torch loads automatically."""
    found = {name for name in PLUG_INS if find_package(name) is not None}
    # Our own plug-in does nothing unless a variable asks for it.
    points = metadata.entry_points(group="torch.backends")
    found |= {point.name for point in points if point.dist is None or point.dist.name != DROP_INS}
    if not found:
        return Finding(name="torch plug-ins", value="none", verdict=Verdict.ABSENT, facts={"names": ""})
    names = ", ".join(sorted(found))
    return Finding(name="torch plug-ins", value=names, facts={"names": names})


def find_package(name: str) -> Path | None:
    """The folder that `import NAME` would import; nothing is imported."""
    folders = _folders_of(name)
    return folders[0] if folders else None


def is_ours(folder: Path) -> bool:
    """Whether a package is built on Pilotage, wherever it was installed from."""
    return any(
        IMPORTS_PILOTAGE.search(source.read_text(encoding="utf-8", errors="replace")) for source in folder.rglob("*.py")
    )


def _folders_of(name: str) -> list[Path]:
    # Not importlib.util.find_spec: it returns modules that this process has already imported.
    specs = (finder.find_spec(name, None) for finder in sys.meta_path)
    spec = next((found for found in specs if found is not None), None)
    if spec is None:
        return []
    if spec.submodule_search_locations is None:
        return [Path(spec.origin)] if spec.origin else []
    return [Path(folder) for folder in spec.submodule_search_locations]


def _absent(name: str) -> Finding:
    return Finding(name=name, value="none", verdict=Verdict.ABSENT, facts=_facts(None, None))


def _facts(maker: str | None, folder: Path | None) -> dict[str, str | None]:
    return {"maker": maker, "folder": None if folder is None else str(folder)}
