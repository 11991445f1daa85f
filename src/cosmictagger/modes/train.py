"""mode=train."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from cosmictagger.configuration.mode import Train
from cosmictagger.configuration.root import Configuration
from cosmictagger.devices.choosing import choose_device
from cosmictagger.modes.sources import held_out_events, loader_for, training_events
from cosmictagger.networks.uresnet import parameter_count
from cosmictagger.records.checkpoints import Checkpoints, find, load
from cosmictagger.records.process_log import LOGGER
from cosmictagger.records.report import placement_lines, write_report
from cosmictagger.training.journal import Journal
from cosmictagger.training.loop import Periods, Training
from cosmictagger.training.schedule import Schedule


def train(chosen: Configuration, folder: Path) -> None:
    """Train, from the newest checkpoint of the run on where there is one."""
    assert isinstance(chosen.mode, Train)
    with ExitStack() as open_things:
        training = _training(chosen, chosen.mode, folder, open_things)
        open_things.callback(training.journal.close)
        training.run(chosen.run.iterations)
        _finish(chosen, training, folder)


def _training(chosen: Configuration, mode: Train, folder: Path, open_things: ExitStack) -> Training:
    checkpoints = Checkpoints(folder / "checkpoints")
    checkpoints.sweep()
    network, device = choose_device(chosen)
    LOGGER.info("Total number of trainable parameters in this network: %d", parameter_count(network))
    source, aux = training_events(chosen), held_out_events(chosen)
    loader = open_things.enter_context(loader_for(chosen, source, "random_blocks" if aux else "serial_access"))
    held_out = open_things.enter_context(loader_for(chosen, aux, "random_blocks")) if aux else None
    images = chosen.run.minibatch_size * mode.optimizer.gradient_accumulation
    found = _found(checkpoints, mode.weights_location)
    state = load(found) if found is not None else None
    training = Training(
        device=device,
        loader=loader,
        held_out=held_out,
        schedule=Schedule(peak=mode.optimizer.learning_rate, minibatch_size=images, events=loader.events),
        checkpoints=checkpoints,
        journal=Journal(
            folder,
            images_per_step=images,
            resumed_at=int(state["global_step"]) if state else 0,
            saver=chosen.run.saver,
            logging_iteration=mode.logging_iteration,
            summary_iteration=mode.summary_iteration,
        ),
        periods=Periods(
            validation=chosen.run.aux_iterations,
            checkpoint=mode.checkpoint_iteration,
            accumulation=mode.optimizer.gradient_accumulation,
            pictures=None if mode.no_summary_images else 1,
        ),
        trace_folder=folder / "profiles" if chosen.run.profile else None,
    )
    if state is None:
        LOGGER.info("No checkpoint file found, restarting from scratch")
        return training
    training.restore(state, everything=found is not None and found.parent == checkpoints.folder)
    LOGGER.info("Resumed from %s at step %d", found, training.step)
    return training


def _found(checkpoints: Checkpoints, location: str) -> Path | None:
    """The run's own newest checkpoint, or else the one that was asked for."""
    own = checkpoints.latest()
    return own if own is not None or not location else find(location)


def _finish(chosen: Configuration, training: Training, folder: Path) -> None:
    throughput, placement = training.journal.throughput, training.device.placement()
    for line in throughput.lines():
        LOGGER.info(line)
    asked = f"{chosen.run.compute_mode.name}, {chosen.run.precision.name}"
    for line in placement_lines(placement, asked=asked, samples=training.samples):
        LOGGER.info(line)
    training.journal.profile.save(folder / "profiles", asdict(chosen))
    numbers = {
        "global_step": training.step,
        "samples_seen": training.samples,
        "figure_of_merit": throughput.figure_of_merit,
        "compilation_seconds": throughput.compilation,
    }
    write_report(folder, placement, numbers)
