"""mode=inference."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from cosmictagger.configuration.mode import Inference
from cosmictagger.configuration.root import Configuration
from cosmictagger.data.larcv.event_file import EventFile
from cosmictagger.data.larcv.merging import merge_files
from cosmictagger.data.larcv.predictions import PredictionWriter
from cosmictagger.devices.executor import Executor
from cosmictagger.errors import ConfigurationError
from cosmictagger.modes.evaluation import entries_from, evaluate_entries, share_of, trained_executor
from cosmictagger.modes.scores import BatchScores, averages, of_heads, row
from cosmictagger.modes.sources import events_to_predict
from cosmictagger.processes.process_group import Processes
from cosmictagger.records.process_log import LOGGER, QUIET_ON_TERMINALS
from cosmictagger.records.progress import progress
from cosmictagger.records.report import placement_lines, write_report
from cosmictagger.records.tables import MetricTable
from cosmictagger.records.throughput import Throughput
from cosmictagger.training.heads import head_keys
from cosmictagger.training.journal import SHOWN
from cosmictagger.training.metrics import NAMES

CLEAR = 10
"""Neutrino pixels that an event needs to count as clear."""

PREDICTIONS = "predictions.h5"


def infer(config: Configuration, folder: Path, processes: Processes) -> None:
    """Predict events, write the predictions and a report; several processes divide the events."""
    assert isinstance(config.mode, Inference)
    source = events_to_predict(config)
    if source is None:
        raise ConfigurationError(
            "mode=inference needs events to read, but data=synthetic has none. Use data=generated or data=real."
        )
    executor = trained_executor(config, folder, processes)
    with source as file:
        entries = entries_from(file, config.mode.start_index, config.run.iterations * config.run.minibatch_size)
        LOGGER.info("Inference on %d of %d entries of %s", len(entries), len(file), file.path)
        throughput = Throughput(config.run.minibatch_size)
        part = folder / (f"predictions-{processes.rank}.h5" if processes.is_distributed else PREDICTIONS)
        scores = _predict(config, executor, file, share_of(entries, processes), part, processes, throughput)
    every = [each for some in processes.gather([each.plain() for each in scores]) for each in some]
    if processes.writes:
        _join_predictions(folder, processes)
        _report(config, folder, executor, [BatchScores.from_plain(each) for each in every], throughput, processes)


def _predict(
    config: Configuration,
    executor: Executor,
    file: EventFile,
    entries: list[int],
    target: Path,
    processes: Processes,
    throughput: Throughput,
) -> list[BatchScores]:
    """Write the predictions for some entries; returns the scores of each batch."""
    scores, start = [], time.perf_counter()
    if not entries:
        target.unlink(missing_ok=True)
        return []
    size = config.run.minibatch_size // processes.size
    with (
        PredictionWriter(target, source=file, downsample=config.data.downsample) as writer,
        progress(len(entries), "inference", shown=processes.writes) as bar,
    ):
        for evaluated in evaluate_entries(executor, file, entries, config, size):
            writer.write(evaluated.batch, evaluated.prediction.numpy())
            scores.append(BatchScores.of(evaluated))
            bar.update(len(evaluated.batch.entries))
            throughput.add(time.perf_counter() - start)
            start = time.perf_counter()
    return scores


def _join_predictions(folder: Path, processes: Processes) -> None:
    """Join what each process wrote, in the order of the events."""
    if processes.is_distributed:
        parts = [path for rank in range(processes.size) if (path := folder / f"predictions-{rank}.h5").is_file()]
        merge_files(folder / PREDICTIONS, parts)
        for path in parts:
            path.unlink()
    LOGGER.info("Predictions written to %s", folder / PREDICTIONS)


def _report(
    config: Configuration,
    folder: Path,
    executor: Executor,
    scores: list[BatchScores],
    throughput: Throughput,
    processes: Processes,
) -> None:
    keys = head_keys(config.network)
    _write_table(config, folder, scores, keys)
    entries = sum(each.events for each in scores)
    means, clear = averages(scores) | of_heads(scores, keys), averages(scores, neutrino_pixels=CLEAR)
    LOGGER.info("Inference report: %d batches processed for %d entries.", len(scores), entries)
    for name, value in means.items():
        LOGGER.info("  %s: %.4f", name, value)
    LOGGER.info("Of events with at least %d neutrino pixels:", CLEAR)
    for name in NAMES:
        LOGGER.info("  Average/%s: %.4f", name, clear[f"Average/{name}"])
    for line in throughput.lines():
        LOGGER.info(line)
    placement = replace(executor.placement(), instances=processes.size)
    if processes.is_distributed:
        placement = replace(placement, exchange="none: each instance predicts its share of the events")
    asked = f"{config.run.compute_mode.name}, {config.run.precision.name}"
    for line in placement_lines(placement, asked=asked, samples=entries):
        LOGGER.info(line)
    write_report(folder / "inference", placement, {"entries": entries, "metrics": means, "metrics_clear": clear})


def _write_table(config: Configuration, folder: Path, scores: list[BatchScores], keys: tuple[str, ...]) -> None:
    assert isinstance(config.mode, Inference)
    table = MetricTable(folder / "ana_metrics.csv")
    for number, each in enumerate(scores):
        values = row(each, keys)
        table.write(number, values)
        if number % config.mode.logging_iteration == 0:
            numbers = ", ".join(f"{name}: {values[name]:.3g}" for name in SHOWN if name in values)
            LOGGER.info("ana Step %d metrics: %s", number, numbers, extra={QUIET_ON_TERMINALS: True})
    table.close()
