"""mode=train."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path

from cosmictagger.configuration.mode import Train
from cosmictagger.configuration.root import Configuration
from cosmictagger.data.synthetic import SyntheticEvents
from cosmictagger.devices.choosing import device_for
from cosmictagger.devices.loading import Purpose
from cosmictagger.modes.resuming import FoundCheckpoint, check_seed, find_checkpoint, is_restarted
from cosmictagger.modes.sources import cached, training_events, validation_events
from cosmictagger.networks.uresnet import UResNet, parameter_count
from cosmictagger.processes.consistency import ConsistencyCheck
from cosmictagger.processes.process_group import Processes
from cosmictagger.records.checkpoints import Checkpoints
from cosmictagger.records.process_log import LOGGER
from cosmictagger.records.report import placement_lines, write_report
from cosmictagger.training.heads import head_keys
from cosmictagger.training.journal import Journal
from cosmictagger.training.loop import Periods, Training
from cosmictagger.training.metrics import KEYS
from cosmictagger.training.optimizer import check_optimizer_state
from cosmictagger.training.schedule import early_end, run_steps, schedule_for


def train(config: Configuration, folder: Path, processes: Processes) -> None:
    """Train, resuming from the run's newest checkpoint if there is one."""
    assert isinstance(config.mode, Train)
    with ExitStack() as resources:
        training = _training(config, config.mode, folder, processes, resources)
        resources.callback(training.journal.close)
        iterations = _iterations(config, training)
        if (warning := early_end(training.schedule, training.step, training.left(iterations))) is not None:
            LOGGER.warning(warning)
        training.run(iterations)
        _finish(config, training, folder)


def _training(config: Configuration, mode: Train, folder: Path, processes: Processes, resources: ExitStack) -> Training:
    checkpoints = Checkpoints(folder / "checkpoints", instance=processes.rank if processes.per_instance_files else None)
    if processes.writes or processes.per_instance_files:
        checkpoints.sweep()
    device = device_for(config)
    executor = device.executor(config, processes)
    network = executor.network
    LOGGER.info("Total number of trainable parameters in this network: %d", parameter_count(network))
    source, aux = training_events(config), validation_events(config)
    order = "serial_access" if isinstance(source, SyntheticEvents) else "random_blocks"
    loader = device.loader(config, cached(config, source), order, processes, Purpose.training)
    resources.callback(loader.close)
    held_out = None
    if aux is not None:
        held_out = device.loader(config, cached(config, aux), "random_blocks", processes, Purpose.validation)
        resources.callback(held_out.close)
    images = config.run.minibatch_size * mode.optimizer.gradient_accumulation
    found = find_checkpoint(checkpoints, mode.weights_location, processes)
    if found is not None:
        check_optimizer_state(mode.optimizer.name, found.state.get("optimizer"))
        check_seed(config.data.seed, found)
    training = Training(
        executor=executor,
        loader=loader,
        held_out=held_out,
        schedule=schedule_for(mode.optimizer, config.run, loader.events, max(len(source), len(aux or ()))),
        checkpoints=checkpoints,
        journal=_journal(config, mode, folder, images, found, processes),
        periods=_periods(config, mode, loader.joined, processes),
        consistency=ConsistencyCheck(processes, _parameters(network)),
        keys=KEYS + head_keys(config.network),
        trace_folder=folder / "profiles" if config.run.profile and processes.writes else None,
    )
    if found is None:
        LOGGER.info("No checkpoint file found, restarting from scratch")
        return training
    training.restore(found.state, everything=found.is_own, restarted=found.is_own and is_restarted())
    LOGGER.info("Resumed from %s", found.path)
    # Iterations count from here, as in the original, unless a launcher restarted the job.
    LOGGER.info("resumed at step %d, %d steps to go", training.step, training.left(_iterations(config, training)))
    return training


def _iterations(config: Configuration, training: Training) -> int:
    """The steps of this run: as many as configured, or as are left of the whole run's length."""
    whole = run_steps(config.run, training.loader.events)
    return config.run.iterations if whole is None else max(whole - training.began, 0)


def _journal(
    config: Configuration, mode: Train, folder: Path, images: int, found: FoundCheckpoint | None, processes: Processes
) -> Journal:
    return Journal(
        folder,
        images_per_step=images,
        resumed_at=int(found.state["global_step"]) if found else 0,
        saver=config.run.saver,
        logging_iteration=mode.logging_iteration,
        summary_iteration=mode.summary_iteration,
        writes=processes.writes,
    )


def _periods(config: Configuration, mode: Train, joined: int, processes: Processes) -> Periods:
    return Periods(
        validation=config.run.aux_iterations,
        checkpoint=mode.checkpoint_iteration,
        accumulation=mode.optimizer.gradient_accumulation // joined,
        share=config.run.minibatch_size // processes.size,
        images=not mode.no_summary_images,
    )


def _parameters(network: UResNet) -> frozenset[str]:
    return frozenset(name for name, _ in network.named_parameters())


def _finish(config: Configuration, training: Training, folder: Path) -> None:
    training.journal.profile.save(folder / "profiles", asdict(config), rank=training.processes.rank)
    found = training.executor.placement()
    placement = replace(
        found, instances=training.processes.size, exchange=training.consistency.describe(found.replicas)
    )
    problems = training.processes.gather(placement.problems)
    placement = replace(placement, problems=tuple(dict.fromkeys(each for some in problems for each in some)))
    if not training.processes.writes:
        return
    throughput = training.journal.throughput
    for line in throughput.lines():
        LOGGER.info(line)
    asked = f"{config.run.compute_mode.name}, {config.run.precision.name}"
    for line in placement_lines(placement, asked=asked, samples=training.samples):
        LOGGER.info(line)
    numbers = {
        "global_step": training.step,
        "samples_seen": training.samples,
        "figure_of_merit": throughput.figure_of_merit,
        "compilation_seconds": throughput.compilation,
    }
    write_report(folder, placement, numbers)
