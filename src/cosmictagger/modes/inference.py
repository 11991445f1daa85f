"""mode=inference."""

from __future__ import annotations

import time
from pathlib import Path

import torch

from cosmictagger.configuration.mode import Inference
from cosmictagger.configuration.root import Configuration
from cosmictagger.data.larcv.predictions import PredictionWriter
from cosmictagger.errors import ConfigurationError
from cosmictagger.modes.evaluation import EvaluatedBatch, entries_from, evaluate_entries, trained_executor
from cosmictagger.modes.sources import held_out_events
from cosmictagger.processes.process_group import Processes
from cosmictagger.records.process_log import LOGGER, QUIET_ON_TERMINALS
from cosmictagger.records.progress import progress
from cosmictagger.records.report import placement_lines, write_report
from cosmictagger.records.tables import MetricTable
from cosmictagger.records.throughput import Throughput
from cosmictagger.training.heads import head_keys
from cosmictagger.training.journal import SHOWN
from cosmictagger.training.metrics import KEYS, NAMES

CLEAR = 10
"""Neutrino pixels that an event needs to count as clear."""


def infer(config: Configuration, folder: Path, processes: Processes) -> None:
    """Predict held-out events, write the predictions and a report."""
    assert isinstance(config.mode, Inference)
    source = held_out_events(config)
    if source is None:
        raise ConfigurationError(
            "mode=inference needs events to read, but data=synthetic has none. Use data=generated or data=real."
        )
    executor = trained_executor(config, folder)
    size, keys = config.run.minibatch_size, head_keys(config.network)
    with source as file:
        entries = entries_from(file, config.mode.start_index, config.run.iterations * size)
        LOGGER.info("Inference on %d of %d entries of %s", len(entries), len(file), file.path)
        throughput, found = Throughput(size), []
        target = folder / "predictions.h5"
        with PredictionWriter(target, source=file, downsample=config.data.downsample) as writer:
            table = MetricTable(folder / "ana_metrics.csv")
            start = time.perf_counter()
            with progress(len(entries), "inference") as bar:
                for number, evaluated in enumerate(evaluate_entries(executor, file, entries, config)):
                    writer.write(evaluated.batch, evaluated.prediction.numpy())
                    found.append(evaluated)
                    _note(table, config.mode, number, evaluated, keys)
                    bar.update(len(evaluated.batch.entries))
                    throughput.add(time.perf_counter() - start)
                    start = time.perf_counter()
            table.close()
        LOGGER.info("Predictions written to %s", target)
    means, clear = averages(found) | of_heads(found, keys), averages(found, neutrino_pixels=CLEAR)
    LOGGER.info("Inference report: %d batches processed for %d entries.", len(found), len(entries))
    for name, value in means.items():
        LOGGER.info("  %s: %.4f", name, value)
    LOGGER.info("Of events with at least %d neutrino pixels:", CLEAR)
    for name in NAMES:
        LOGGER.info("  Average/%s: %.4f", name, clear[f"Average/{name}"])
    for line in throughput.lines():
        LOGGER.info(line)
    placement = executor.placement()
    asked = f"{config.run.compute_mode.name}, {config.run.precision.name}"
    for line in placement_lines(placement, asked=asked, samples=len(entries)):
        LOGGER.info(line)
    write_report(folder / "inference", placement, {"entries": len(entries), "metrics": means, "metrics_clear": clear})


def _values(evaluated: EvaluatedBatch) -> dict[str, float]:
    per_plane = evaluated.numbers.mean(1)
    numbers = torch.cat((per_plane.mean(0, keepdim=True), per_plane)).flatten()
    loss = {} if evaluated.loss is None else {"loss": evaluated.loss}
    return {**dict(zip(KEYS, numbers.tolist(), strict=True)), **loss}


def _note(table: MetricTable, mode: Inference, number: int, evaluated: EvaluatedBatch, keys: tuple[str, ...]) -> None:
    heads = evaluated.heads if evaluated.heads is not None else (float("nan"),) * len(keys)
    values = {**_values(evaluated), **dict(zip(keys, heads, strict=True))}
    table.write(number, {"loss": float("nan"), **values} if "loss" not in values else values)
    if number % mode.logging_iteration == 0:
        numbers = ", ".join(f"{name}: {values[name]:.3g}" for name in SHOWN if name in values)
        LOGGER.info("ana Step %d metrics: %s", number, numbers, extra={QUIET_ON_TERMINALS: True})


def averages(found: list[EvaluatedBatch], *, neutrino_pixels: int = 0) -> dict[str, float]:
    """Each metric averaged over entries with enough neutrino pixels, and the loss over full batches."""
    wanted = torch.cat([evaluated.neutrino_pixels for evaluated in found]) >= neutrino_pixels
    per_plane = torch.cat([evaluated.numbers for evaluated in found], dim=1)[:, wanted].mean(1)
    numbers = torch.cat((per_plane.mean(0, keepdim=True), per_plane)).flatten()
    losses = [evaluated.loss for evaluated in found if evaluated.loss is not None]
    loss = {"loss": sum(losses) / len(losses)} if losses and not neutrino_pixels else {}
    return {**dict(zip(KEYS, numbers.tolist(), strict=True)), **loss}


def of_heads(found: list[EvaluatedBatch], keys: tuple[str, ...]) -> dict[str, float]:
    """The metrics of the heads, averaged over full batches."""
    rows = [evaluated.heads for evaluated in found if evaluated.heads is not None]
    return (
        {key: sum(column) / len(rows) for key, column in zip(keys, zip(*rows, strict=True), strict=True)}
        if rows
        else {}
    )
