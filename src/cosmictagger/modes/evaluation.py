"""Evaluating the events of a file, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from cosmictagger.configuration.root import Configuration
from cosmictagger.data.detector import NEUTRINO
from cosmictagger.data.events import Batch
from cosmictagger.data.larcv.event_file import EventFile
from cosmictagger.data.truth_arrays import truths_of
from cosmictagger.devices.choosing import device_for
from cosmictagger.devices.executor import Evaluation, Executor
from cosmictagger.errors import ConfigurationError
from cosmictagger.networks.uresnet import stack_planes
from cosmictagger.processes.process_group import Processes
from cosmictagger.records.checkpoints import load, weights_of_run
from cosmictagger.records.process_log import LOGGER
from cosmictagger.training.metrics import KEYS, image_metrics


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluatedBatch:
    """A batch with its prediction and metrics."""

    batch: Batch
    """The batch as stored in the file."""

    prediction: torch.Tensor
    numbers: torch.Tensor
    """The metrics of each image of each plane, (3, N, 5)."""

    loss: float | None
    """None if the batch was padded."""

    heads: tuple[float, ...] | None = None
    """The metrics of the heads; None if the batch was padded."""

    @property
    def neutrino_pixels(self) -> torch.Tensor:
        """Neutrino pixels of each event, over all planes."""
        return torch.from_numpy((self.batch.label == NEUTRINO).sum((1, 2, 3)))


def trained_executor(config: Configuration, folder: Path, processes: Processes) -> Executor:
    """An executor with the configured weights, or with the run's own; only the first process reads them."""
    found = None
    if processes.writes:
        path = weights_of_run(config.mode.weights_location, folder)
        state = load(path)
        found = state["state_dict"]
        LOGGER.info("Weights of %s, step %s", path, state.get("global_step", "unknown"))
    # Processes evaluate different numbers of batches, so the executor must not exchange anything.
    executor = device_for(config).executor(config)
    executor.restore({"state_dict": processes.broadcast(found)})
    return executor


def entries_from(file: EventFile, start: int, most: int) -> list[int]:
    """Entries from the start, limited by a number and by the file."""
    if not 0 <= start < len(file):
        raise ConfigurationError(
            f"mode.start_index is {start}, but {file.path} holds only {len(file)} events, counted from 0."
        )
    return list(range(start, min(len(file), start + most)))


def share_of(entries: list[int], processes: Processes) -> list[int]:
    """The entries of one of several processes: neighbours, so that shares joined by rank have the order of the file."""
    first, last = (len(entries) * rank // processes.size for rank in (processes.rank, processes.rank + 1))
    return entries[first:last]


def evaluate_entries(
    executor: Executor, file: EventFile, entries: list[int], config: Configuration, size: int | None = None
) -> Iterator[EvaluatedBatch]:
    """Predict batch by batch; the last batch is padded with its first event and cut again."""
    size = size or config.run.minibatch_size
    for first in range(0, len(entries), size):
        wanted = entries[first : first + size]
        padded = wanted + [wanted[0]] * (size - len(wanted))
        batch = file.dense_batch(padded, config.data.downsample)
        given = replace(batch, image=np.log1p(batch.image)) if config.data.img_transform else batch
        if config.network.event_label or config.network.vertex:
            given = replace(given, truths=truths_of(file, batch, config.data.downsample))
        yield _cut(batch, executor.evaluate(given), len(wanted))


def _cut(batch: Batch, found: Evaluation, count: int) -> EvaluatedBatch:
    kept = Batch(
        image=batch.image[:count],
        label=batch.label[:count],
        entries=batch.entries[:count],
        event_ids=batch.event_ids[:count],
    )
    prediction = found.prediction[:count]
    stacked = stack_planes(prediction)[:, 0], stack_planes(torch.from_numpy(kept.label))[:, 0]
    whole = count == len(batch.entries)
    return EvaluatedBatch(
        batch=kept,
        prediction=prediction,
        numbers=image_metrics(*stacked),
        loss=found.loss if whole else None,
        heads=tuple(found.metrics[len(KEYS) :].tolist()) if whole else None,
    )
