"""Everything that training writes while it runs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from cosmictagger.data.events import Array
from cosmictagger.records.process_log import LOGGER, QUIET_ON_TERMINALS
from cosmictagger.records.profile import StepProfile
from cosmictagger.records.summaries import Summaries
from cosmictagger.records.tables import MetricTable
from cosmictagger.records.throughput import Throughput

SHOWN = ("Average/Non_Bkg_Accuracy", "Average/mIoU", "loss")


class Journal:
    """Tables, TensorBoard files, log lines and timings of one run."""

    def __init__(
        self,
        folder: Path,
        *,
        images_per_step: int,
        resumed_at: int = 0,
        saver: bool = True,
        logging_iteration: int = 1,
        summary_iteration: int = 1,
        writes: bool = True,
    ) -> None:
        kinds = ("train", "test") if writes else ()
        self._writes = writes
        self._tables = {kind: MetricTable(folder / f"{kind}_metrics.csv", resumed_at=resumed_at) for kind in kinds}
        self._summaries = {kind: Summaries(folder / kind, resumed_at=resumed_at) for kind in kinds} if saver else {}
        self._logging, self._summarizing = logging_iteration, summary_iteration
        self._images, self._last_logged = images_per_step, time.perf_counter()
        self.throughput = Throughput(images_per_step)
        self.profile = StepProfile()

    def note(self, kind: str, step: int, values: Mapping[str, float], *, io: float = 0.0, seconds: float = 0.0) -> None:
        """Record a training step (``train``) or a validation (``test``); only one of several processes writes."""
        if not self._writes:
            return
        self._tables[kind].write(step, values)
        if self._summaries and step % self._summarizing == 0:
            self._summaries[kind].write(step, values)
        if step % self._logging == 0:
            self._log(kind, step, values, io, seconds)

    def draw(self, kind: str, step: int, prediction: Array, label: Array) -> None:
        """Add the images of an event."""
        if self._summaries:
            self._summaries[kind].draw(step, prediction, label)

    def close(self) -> None:
        """Close all files."""
        for table in self._tables.values():
            table.close()
        for summaries in self._summaries.values():
            summaries.close()

    def _log(self, kind: str, step: int, values: Mapping[str, float], io: float, seconds: float) -> None:
        now = time.perf_counter()
        rate = self._images * self._logging / max(now - self._last_logged, 1e-9)
        self._last_logged = now
        numbers = ", ".join(f"{name}: {values[name]:.3g}" for name in SHOWN)
        speed = f"({rate:.2g} Img/s / {io:.2g} IOs / {seconds:.2g} (Step)(s))"
        extra = {QUIET_ON_TERMINALS: True, "metrics": (kind, step, dict(values))}
        LOGGER.info("%s Step %d metrics: %s %s", kind, step, numbers, speed, extra=extra)
