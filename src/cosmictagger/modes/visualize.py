"""mode=visualize."""

from __future__ import annotations

from pathlib import Path

from cosmictagger.configuration.mode import Visualize
from cosmictagger.configuration.root import Configuration
from cosmictagger.data.events import Array
from cosmictagger.data.larcv.event_file import EventFile
from cosmictagger.displays.curve import draw_training
from cosmictagger.displays.event import draw_event
from cosmictagger.modes.evaluation import entries_from, evaluate_entries, share_of, trained_executor
from cosmictagger.modes.sources import events_to_predict
from cosmictagger.processes.process_group import Processes
from cosmictagger.records.checkpoints import Checkpoints
from cosmictagger.records.process_log import LOGGER


def visualize(config: Configuration, folder: Path, processes: Processes) -> None:
    """Draw events, with predictions if there are weights; several processes divide them."""
    assert isinstance(config.mode, Visualize)
    source = events_to_predict(config)
    assert source is not None
    with source as file:
        entries = share_of(entries_from(file, config.mode.start_index, config.mode.events), processes)
        if config.mode.weights_location or Checkpoints(folder / "checkpoints").latest() is not None:
            _draw_judged(config, folder, file, entries, processes)
        else:
            LOGGER.info("No checkpoint file found, drawing only charge and label")
            _draw_plain(config, folder, file, entries)
    network = f"{config.network.name}, depth {config.network.depth}, downsample {config.data.downsample}"
    title = f"{config.run.id}: {network}"
    if processes.writes and (curve := draw_training(folder / "training.png", folder, title=title)) is not None:
        LOGGER.info("Drawn: %s", curve)


def _draw_judged(
    config: Configuration, folder: Path, file: EventFile, entries: list[int], processes: Processes
) -> None:
    executor = trained_executor(config, folder, processes)
    for evaluated in evaluate_entries(executor, file, entries, config):
        for image, label, prediction, entry in zip(
            evaluated.batch.image,
            evaluated.batch.label,
            evaluated.prediction.numpy(),
            evaluated.batch.entries.tolist(),
            strict=True,
        ):
            _draw(config, folder, file, entry, image, label, prediction)


def _draw_plain(config: Configuration, folder: Path, file: EventFile, entries: list[int]) -> None:
    for entry in entries:
        batch = file.dense_batch([entry], config.data.downsample)
        _draw(config, folder, file, entry, batch.image[0], batch.label[0], None)


def _draw(
    config: Configuration,
    folder: Path,
    file: EventFile,
    entry: int,
    image: Array,
    label: Array,
    prediction: Array | None,
) -> None:
    path = folder / "displays" / f"event_{entry}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    title = f"{config.run.id}, event {entry}"
    draw_event(path, image, label, prediction, title=title, truth=file.truth(entry), downsample=config.data.downsample)
    LOGGER.info("Drawn: %s", path)
