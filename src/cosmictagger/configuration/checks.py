"""Rules that refuse invalid combinations of options before anything is loaded."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pilotage
from cosmictagger.configuration.choices import ConvMode, DistributedMode, ModeKind, Norm
from cosmictagger.configuration.compute_mode import options, precision, present, processes
from cosmictagger.configuration.data import Generated, Real, Synthetic
from cosmictagger.configuration.framework import Tensorflow, Torch
from cosmictagger.configuration.mode import Inference, Iotest, Train, Visualize
from cosmictagger.configuration.root import Configuration
from cosmictagger.configuration.run import Run
from cosmictagger.configuration.schedule_rules import schedule_problems
from cosmictagger.configuration.tensorflow_rules import tensorflow_problems
from cosmictagger.errors import CheckpointError, ConfigurationError

HALVINGS = 7
"""How often downsampling and network together can halve 1280 pixels."""

VERTEX_HALVINGS = 2
"""The level of the vertex head, above the deepest."""

MOST_NAMES = 4
"""How many files of a folder a message lists."""

READS = (ModeKind.inference, ModeKind.visualize)
"""Modes that read only held-out events."""


Rule: TypeAlias = Callable[[Configuration], Iterator[str]]
"""Yields a message for each problem."""


def check(config: Configuration, rules: Sequence[Rule] | None = None) -> None:
    """Raise the first problem that some rules find, or that any rule finds."""
    for rule in RULES if rules is None else rules:
        for message in rule(config):
            raise ConfigurationError(message)


def _members(config: Configuration) -> Iterator[str]:
    """Refuse fields that contradict the chosen member of their group."""
    if not config.run.id.strip():
        yield "run.id is empty. It names the run and its folder: use run.id=NAME."
    mode, framework, data = config.mode, config.framework, config.data
    if mode.name is not (wanted := type(mode)().name):
        yield f"mode.name={mode.name.name} does not fit mode={wanted.name}. Use mode={mode.name.name}."
    if framework.name != (name := type(framework)().name):
        yield f"framework.name={framework.name} does not fit framework={name}. Leave it out."
    if data.synthetic is not isinstance(data, Synthetic):
        yield (
            f"data.synthetic={str(data.synthetic).lower()} does not fit the kind of data. "
            "Use data=synthetic, generated or real."
        )


def _framework(config: Configuration) -> Iterator[str]:
    framework = config.framework
    if isinstance(framework, Tensorflow):
        yield from tensorflow_problems(config, framework)
    if not isinstance(framework, Torch):
        return
    if framework.sparse:
        yield "framework.sparse=true is not supported: networks are dense. Omit it."
    if framework.distributed_mode is DistributedMode.horovod:
        yield "framework.distributed_mode=horovod is not supported. Omit it, or use DDP."


def _counts(config: Configuration) -> Iterator[str]:
    run, network, data = config.run, config.network, config.data
    at_least_one = {
        "run.minibatch_size": run.minibatch_size,
        "run.iterations": run.iterations,
        "run.aux_iterations": run.aux_iterations,
        "network.n_initial_filters": network.n_initial_filters,
        "network.bottleneck_deepest": network.bottleneck_deepest,
    }
    if isinstance(config.mode, Train):
        at_least_one |= {
            "mode.checkpoint_iteration": config.mode.checkpoint_iteration,
            "mode.optimizer.gradient_accumulation": config.mode.optimizer.gradient_accumulation,
        }
    if isinstance(config.mode, Train | Inference):
        at_least_one |= {
            "mode.summary_iteration": config.mode.summary_iteration,
            "mode.logging_iteration": config.mode.logging_iteration,
        }
    if isinstance(config.mode, Visualize):
        at_least_one |= {"mode.events": config.mode.events}
    at_least_zero = {
        "data.downsample": data.downsample,
        "data.seed": data.seed,
        "data.workers": data.workers,
        "framework.seed": config.framework.seed,
        "run.threads": run.threads,
        "network.depth": network.depth,
        "network.blocks_per_layer": network.blocks_per_layer,
        "network.blocks_deepest_layer": network.blocks_deepest_layer,
        "network.blocks_final": network.blocks_final,
    }
    if isinstance(data, Generated):
        at_least_zero |= {"data.generator_seed": data.generator_seed}
    for least, fields in ((1, at_least_one), (0, at_least_zero)):
        for name, value in fields.items():
            if value < least:
                yield f"{name} is {value}. It must be at least {least}."


def _lengths(config: Configuration) -> Iterator[str]:
    run = config.run
    if run.run_length < 0:
        yield f"run.run_length is {run.run_length}. It must be at least 1, or 0 to count run.iterations."
    if run.run_length and run.iterations != Run().iterations:
        yield (
            f"run.iterations={run.iterations} and run.run_length={run.run_length} both set the length of the run. "
            "Use one of them."
        )


def _mode(config: Configuration) -> Iterator[str]:
    mode = config.mode
    if isinstance(mode, Iotest) and mode.start_index < 0:
        yield f"mode.start_index is {mode.start_index}. It must be at least 0."
    if isinstance(mode, Train) and not 0 < mode.optimizer.learning_rate < math.inf:
        yield f"mode.optimizer.learning_rate is {mode.optimizer.learning_rate}. It must be above 0 and finite."


def _network(config: Configuration) -> Iterator[str]:
    network, downsample = config.network, config.data.downsample
    if isinstance(config.mode, Iotest):
        # It builds no network; only the images must have whole pixels.
        network = replace(network, depth=0)
    if network.depth + downsample > HALVINGS:
        left = HALVINGS - downsample
        less = f"network.depth={left}" if left > 0 else f"data.downsample={max(HALVINGS - network.depth, 0)}"
        yield (
            f"network.depth={network.depth} and data.downsample={downsample} add up to "
            f"{network.depth + downsample}, but 1280 pixels can be halved only {HALVINGS} times. "
            f"Use {less} or less."
        )
    if network.normalization is Norm.layer and network.conv_mode is ConvMode.conv_2D:
        yield "network.normalization=layer needs network.conv_mode=conv_3D. Choose batch or none."
    if network.block_concat and network.conv_mode is ConvMode.conv_3D:
        yield (
            "network.block_concat=true needs network.conv_mode=conv_2D: in 3D the deepest "
            "block always joins the planes."
        )
    if network.filter_size_deepest % 2 == 0 or network.filter_size_deepest < 1:
        yield (
            f"network.filter_size_deepest is {network.filter_size_deepest}. It must be odd, so that "
            "images keep their size."
        )
    if network.vertex and network.depth < VERTEX_HALVINGS:
        yield (
            f"network.vertex=true needs {VERTEX_HALVINGS} levels above the deepest, "
            f"but network.depth is {network.depth}."
        )
    if (network.event_label or network.vertex) and isinstance(config.data, Synthetic):
        yield "network.event_label and network.vertex need events with a neutrino, but data=synthetic is noise."
    if network.weight_decay:
        yield (
            f"network.weight_decay={network.weight_decay} belongs to the original's TensorFlow trainer; both "
            "frameworks here train without it. Leave it at 0."
        )


def _files(config: Configuration) -> Iterator[str]:
    from cosmictagger.data.larcv.event_file import EventFile, check_minibatch
    from cosmictagger.errors import DataError

    data, needed = config.data, config.run.minibatch_size
    if isinstance(data, Generated):
        for name, events in (("events", data.events), ("aux_events", data.aux_events)):
            if events < needed and (name == "aux_events" or config.mode.name not in READS):
                yield (
                    f"run.minibatch_size is {needed}, but data.{name} is {events}. "
                    "Use smaller batches or generate more events."
                )
        return
    if not isinstance(data, Real):
        if config.mode.name is ModeKind.visualize:
            yield "data=synthetic is noise, with nothing to show. Use data=generated or data=real."
        return
    for name in files_used(config):
        path = Path(data.data_directory) / getattr(data, name)
        if not path.is_file():
            if name == "aux_file":
                # As in the original, training then continues without validation, with a warning.
                continue
            yield (
                f"No file {path}: {_present(path.parent)}. Set data.data_directory and data.{name}, or use "
                "data=generated."
            )
            return
        try:
            with EventFile(path) as file:
                check_minibatch(path, len(file), needed)
                yield from _halvings(config, path, file.shape)
        except DataError as error:
            yield str(error)


def _present(folder: Path) -> str:
    """What the folder of a missing file holds, for an error message."""
    if not folder.is_dir():
        return "the folder does not exist"
    found = sorted(path.name for path in folder.glob("*.h5"))
    more = f" and {len(found) - MOST_NAMES} more" if len(found) > MOST_NAMES else ""
    return f"the folder has {', '.join(found[:MOST_NAMES])}{more}" if found else "the folder has no .h5 file"


def _halvings(config: Configuration, path: Path, shape: tuple[int, int]) -> Iterator[str]:
    """Refuse a network that is too deep for the images of a file, which may be smaller than the detector's."""
    wanted = config.network.depth + config.data.downsample
    if isinstance(config.mode, Train | Inference) and any(side % 2**wanted for side in shape):
        yield (
            f"{path} holds images of {shape[0]} x {shape[1]}, which cannot be halved {wanted} times: "
            f"network.depth={config.network.depth} and data.downsample={config.data.downsample}. Reduce either."
        )


def _weights(config: Configuration) -> Iterator[str]:
    """Refuse a location without a checkpoint."""
    from cosmictagger.records.checkpoints import Checkpoints, weights_of_run

    if pilotage.world_here().rank or config.mode.name is ModeKind.iotest:
        # Only the first process needs to see the folder.
        return
    folder, location = Path(config.output_dir), config.mode.weights_location
    resumes = config.mode.name is ModeKind.train and Checkpoints(folder / "checkpoints").latest() is not None
    if resumes or not (location or config.mode.name is ModeKind.inference):
        return
    try:
        weights_of_run(location, folder)
    except CheckpointError as error:
        yield str(error)


def files_used(config: Configuration) -> tuple[str, ...]:
    """Which of ``file`` and ``aux_file`` a run reads."""
    match config.mode.name:
        case ModeKind.train:
            return ("file", "aux_file")
        case ModeKind.iotest | ModeKind.inference | ModeKind.visualize:
            return ("file",)


BEFORE_IMPORTS: tuple[Rule, ...] = (_members, _framework, _counts, _lengths, schedule_problems)
"""Rules that need neither torch nor a vendor's package."""

OF_VALUES: tuple[Rule, ...] = (*BEFORE_IMPORTS, _mode, _network)
"""Rules that look only at the configuration: every job of a sweep is held to them before the first one runs."""

RULES: tuple[Rule, ...] = (
    *BEFORE_IMPORTS,
    present,
    options,
    processes,
    precision,
    _mode,
    _network,
    _files,
    _weights,
)
"""All rules, in the order in which they apply."""
