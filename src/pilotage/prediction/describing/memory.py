"""The memory of a prediction in the document."""

from __future__ import annotations

from collections import defaultdict

from pilotage.prediction.describing.sources import source_of
from pilotage.prediction.document import LayerMemory, LiveTensor, Memory, Peak, StageMemory, Timeline
from pilotage.prediction.memory.liveness import Liveness
from pilotage.prediction.memory.tiles import tile_memory
from pilotage.prediction.prediction import Prediction

__all__ = ["memory_of"]

_POINTS, _LAYERS, _TENSORS = 400, 300, 50


def memory_of(prediction: Prediction) -> Memory:
    """The memory by category, module and operation, on the fullest device."""
    fullest = prediction.needs.fullest
    live, tiles = fullest.live, prediction.model.tiles
    by_category = dict(live.at_peak())
    if tiles is not None:
        by_category["imbalance"] = max(0, prediction.peak_bytes - fullest.peak_bytes)
    return Memory(
        by_category=by_category,
        by_layer=_layers(live),
        by_stage=tuple(
            StageMemory(stage=each.stage, peak_bytes=each.peak_bytes, by_category=each.live.at_peak())
            for each in prediction.needs.stages
        ),
        tiles=None if tiles is None else tile_memory(fullest.peak_bytes, tiles),
        timeline=_timeline(live),
        peak=Peak(
            operation=live.peak,
            live=tuple(
                LiveTensor(
                    name=tensor.name,
                    bytes=size,
                    category=tensor.category.value,
                    module=tensor.module,
                    source=source_of(tensor.line),
                )
                for tensor, size in live.live[:_TENSORS]
            ),
        ),
    )


def _layers(live: Liveness) -> tuple[LayerMemory, ...]:
    """The memory of each module at the peak, largest first."""
    found: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for tensor, size in live.live:
        if tensor.module:
            found[tensor.module][tensor.category.value] += size
    layers = [
        LayerMemory(module=module, bytes=sum(parts.values()), category_bytes=dict(parts))
        for module, parts in found.items()
    ]
    return tuple(sorted(layers, key=lambda each: -each.bytes)[:_LAYERS])


def _timeline(live: Liveness) -> Timeline:
    """A selection of operations: the largest of each group of neighbours."""
    count = len(live.totals)
    step = max(1, -(-count // _POINTS))
    chosen = {
        max(range(start, min(start + step, count)), key=live.totals.__getitem__) for start in range(0, count, step)
    }
    places = sorted({*chosen, live.peak})
    return Timeline(
        operation=tuple(places),
        bytes={name: tuple(values[place] for place in places) for name, values in live.by_category.items()},
    )
