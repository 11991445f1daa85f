"""Which options of a run have no effect here: they are stored, and only an IPU would read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pilotage.engine import Noted, log_event
from poptorch._options.popart import HAVE_EFFECT
from poptorch.enums import SyncPattern
from poptorch.options import Options

__all__ = ["note_options_without_effect", "options_without_effect"]

_BY_METHOD = {
    "enableStableNorm": "enableStableNorm",
    "patterns": "_Popart.setPatterns",
    "patterns_level": "_Popart.setPatterns",
}
"""Methods that set one option of PopART."""

_PROFILING = ("autoReport.", "debug.allowOutOfMemory")
"""Options of Poplar with an effect: they ask for a profile."""


def note_options_without_effect(options: Options, *, runs_on_host: bool) -> None:
    """Log one line with the options of a run that have no effect here, if there are any."""
    if found := list(dict.fromkeys(options_without_effect(options, runs_on_host=runs_on_host))):
        message = f"These options have no effect here: {', '.join(found)}."
        log_event(Noted(message=message, can_be_changed=True))


def options_without_effect(options: Options, *, runs_on_host: bool) -> Iterator[str]:
    """The options that were set and that nothing reads, by the names of their methods."""
    if options.available_memory_proportion:
        yield "setAvailableMemoryProportion"
    if options.sync_pattern != SyncPattern.Full:
        yield "syncPattern"
    if options.exists("ipu_id") and type(options).useIpuId is Options.useIpuId:
        yield "useIpuId"
    if options.log_dir != ".":
        yield "logDir"
    if options._execution_strategy.backendOptions().get("separate_backward_phase"):
        yield "useSeparateBackwardPhase"
    yield from _of_locations(options, runs_on_host)
    yield from _of_popart(options._Popart.options)
    if runs_on_host and options._Popart.settings.partials_type == "half":
        yield "Precision.setPartialsType(torch.half)"


def _of_locations(options: Options, runs_on_host: bool) -> Iterator[str]:
    locations = options.TensorLocations
    if locations.exists("numIOTiles"):
        yield "TensorLocations.numIOTiles"
    for kind in ("Activation", "Weight", "Optimizer", "Accumulator"):
        location: Mapping[str, Any] = getattr(locations, f"location_{kind.lower()}")
        if kind in ("Weight", "Accumulator") and location:
            yield f"TensorLocations.set{kind}Location"
        elif runs_on_host and location.get("onChip") == 0:
            yield f"TensorLocations.set{kind}Location: useOnChipStorage(False)"
        for name in ("useIOTilesToLoad", "useIOTilesToStore"):
            if location.get(name):
                yield f"TensorLocations.set{kind}Location: {name}"


def _of_popart(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        if name == "convolutionOptions":
            yield from _of_convolutions(value)
        elif name == "engineOptions":
            yield from (f"_Popart.setEngineOptions({key})" for key in value if not key.startswith(_PROFILING))
        elif name not in HAVE_EFFECT and value is not False:
            yield _BY_METHOD.get(name, f"_Popart.set({name})")


def _of_convolutions(value: Any) -> Iterator[str]:
    for key in value if isinstance(value, Mapping) else ():
        if key == "enableConvDithering":
            yield "Training.setConvolutionDithering"
        elif key != "partialsType":
            yield f"_Popart.set(convolutionOptions[{key}])"
