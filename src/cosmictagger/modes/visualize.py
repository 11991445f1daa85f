"""mode=visualize."""

from __future__ import annotations

from pathlib import Path

from cosmictagger.configuration.mode import Visualize
from cosmictagger.configuration.root import Configuration
from cosmictagger.data.events import Array
from cosmictagger.data.larcv.event_file import EventFile
from cosmictagger.displays.event import draw_event
from cosmictagger.modes.evaluation import entries_from, judge, trained_executor
from cosmictagger.modes.sources import held_out_events
from cosmictagger.processes.together import Processes
from cosmictagger.records.checkpoints import Checkpoints
from cosmictagger.records.process_log import LOGGER


def visualize(chosen: Configuration, folder: Path, processes: Processes) -> None:
    """Draw held-out events, with predictions where there are weights."""
    assert isinstance(chosen.mode, Visualize)
    source = held_out_events(chosen)
    assert source is not None
    with source as file:
        entries = entries_from(file, chosen.mode.start_index, chosen.mode.events)
        if chosen.mode.weights_location or Checkpoints(folder / "checkpoints").latest() is not None:
            _draw_judged(chosen, folder, file, entries)
        else:
            LOGGER.info("No checkpoint file found, drawing charge and label alone")
            _draw_plain(chosen, folder, file, entries)


def _draw_judged(chosen: Configuration, folder: Path, file: EventFile, entries: list[int]) -> None:
    executor = trained_executor(chosen, folder)
    for judged in judge(executor, file, entries, chosen):
        for image, label, prediction, entry in zip(
            judged.batch.image,
            judged.batch.label,
            judged.prediction.numpy(),
            judged.batch.entries.tolist(),
            strict=True,
        ):
            _draw(chosen, folder, file, entry, image, label, prediction)


def _draw_plain(chosen: Configuration, folder: Path, file: EventFile, entries: list[int]) -> None:
    for entry in entries:
        batch = file.dense_batch([entry], chosen.data.downsample)
        _draw(chosen, folder, file, entry, batch.image[0], batch.label[0], None)


def _draw(
    chosen: Configuration,
    folder: Path,
    file: EventFile,
    entry: int,
    image: Array,
    label: Array,
    prediction: Array | None,
) -> None:
    path = folder / "displays" / f"event_{entry}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    title = f"{chosen.run.id}, event {entry}"
    draw_event(path, image, label, prediction, title=title, truth=file.truth(entry), downsample=chosen.data.downsample)
    LOGGER.info("Drawn: %s", path)
