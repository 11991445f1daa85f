"""Live bytes after each operation, and the live tensors at the peak."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pilotage.prediction.trace.operations import TracedTensor

__all__ = ["Liveness", "liveness"]

Bytes = Callable[[TracedTensor], int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Liveness:
    """The memory over the operations of an update."""

    totals: tuple[int, ...]
    """Bytes while each operation runs."""

    by_category: dict[str, tuple[int, ...]]
    peak: int
    """The operation with the most bytes."""

    live: tuple[tuple[TracedTensor, int], ...]
    """Tensors at the peak with their bytes, largest first."""

    @property
    def peak_bytes(self) -> int:
        """The most bytes at once."""
        return self.totals[self.peak]

    def at_peak(self) -> dict[str, int]:
        """Bytes of each category at the peak."""
        return {name: values[self.peak] for name, values in self.by_category.items() if values[self.peak]}


def liveness(
    tensors: Sequence[TracedTensor], extra: dict[str, Sequence[int]], operations: int, size: Bytes
) -> Liveness:
    """Sum the tensors that live during each operation; ``extra`` has more bytes by category, a number per operation."""
    count = max(1, operations)
    changes: dict[str, list[int]] = defaultdict(lambda: [0] * (count + 1))
    here = [(tensor, bytes_) for tensor in tensors if (bytes_ := size(tensor))]
    for tensor, bytes_ in here:
        change = changes[tensor.category.value]
        change[max(0, tensor.first)] += bytes_
        change[min(tensor.last, count - 1) + 1] -= bytes_
    by_category = {name: _running(values, count) for name, values in changes.items()}
    for name, values in extra.items():
        given = tuple(values) or (0,) * count
        present = by_category.get(name, (0,) * count)
        by_category[name] = tuple(a + b for a, b in zip(present, given, strict=True))
    totals = tuple(map(sum, zip(*by_category.values(), strict=True))) if by_category else (0,) * count
    peak = max(range(count), key=totals.__getitem__)
    live = [(tensor, bytes_) for tensor, bytes_ in here if tensor.first <= peak <= tensor.last]
    live.sort(key=lambda pair: -pair[1])
    return Liveness(totals=totals, by_category=by_category, peak=peak, live=tuple(live))


def _running(changes: Sequence[int], count: int) -> tuple[int, ...]:
    found, total = [], 0
    for change in changes[:count]:
        total += change
        found.append(total)
    return tuple(found)
