"""Writing predictions with charge and truth, in the layout of the input."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

import numpy as np

from cosmictagger.data.detector import NEUTRINO, PLANES
from cosmictagger.data.downsampling import check_downsample
from cosmictagger.data.events import Array, Batch
from cosmictagger.data.larcv import layout
from cosmictagger.data.larcv.event_file import EventFile
from cosmictagger.data.larcv.writer import EventWriter
from cosmictagger.errors import DataError

PRODUCERS = (layout.IMAGE_PRODUCER, layout.LABEL_PRODUCER, layout.PREDICTION_PRODUCER)


class PredictionWriter:
    """Appends batches with their predictions; ``EventFile(path, label="sbnd_prediction")`` reads them back."""

    def __init__(self, path: str | Path, *, source: EventFile, downsample: int) -> None:
        check_downsample(downsample, source.shape)
        self._source = source
        self._shape = source.shape[0] >> downsample, source.shape[1] >> downsample
        self._writer = EventWriter(
            path, shape=self._shape, downsample=downsample, producers=PRODUCERS, origin=f"predictions for {source.path}"
        )

    def __enter__(self) -> PredictionWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.__exit__(kind, error, trace)

    def write(self, batch: Batch, prediction: Array) -> None:
        """Append a batch (channels first) with the predicted class of every pixel."""
        expected = (len(batch.entries), PLANES, *self._shape)
        if batch.image.shape != expected or prediction.shape != expected:
            raise DataError(
                f"Predictions have shape {prediction.shape} and images {batch.image.shape}: both must be "
                f"{expected}, channels first."
            )
        if prediction.size and (prediction.min() < 0 or prediction.max() > NEUTRINO):
            raise DataError(f"Predictions must be classes from 0 to {NEUTRINO}, not scores.")
        for position, entry in enumerate(batch.entries.tolist()):
            self._append(entry, batch.image[position], batch.label[position], prediction[position])

    def _append(self, entry: int, image: Array, label: Array, prediction: Array) -> None:
        truth, particles = self._source.truth(entry), self._source.particles(entry)
        run, subrun, event = self._source.event_id(entry)
        self._writer.append(
            [_plane(*maps) for maps in zip(image, label, prediction, strict=True)],
            event_id=(run, subrun, event),
            particles=particles if len(particles) else None,
            vertex_pixels=truth.pixels if truth else None,
        )


def _plane(image: Array, label: Array, prediction: Array) -> tuple[Array, dict[str, Array]]:
    """All pixels with a charge, a label or a predicted class."""
    maps = [np.ascontiguousarray(each.T).reshape(-1) for each in (image, label, prediction)]
    ids = np.flatnonzero((maps[0] != 0) | (maps[1] != 0) | (maps[2] != 0))
    return ids, {producer: values[ids] for producer, values in zip(PRODUCERS, maps, strict=True)}
