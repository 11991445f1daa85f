"""The command ``cosmictagger``."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pilotage
from cosmictagger.configuration.flags import CommandLine, parse
from cosmictagger.errors import ConfigurationError, CosmicTaggerError

if TYPE_CHECKING:
    from cosmictagger.configuration.root import Configuration
    from cosmictagger.processes.process_group import Processes

USAGE = """\
cosmictagger [--config-name RECIPE] mode=MODE run.id=NAME [GROUP=MEMBER] [GROUP.FIELD=VALUE] ...

  cosmictagger mode=train run.id=first network=a21 data.downsample=2 network.depth=5 run.iterations=50
  cosmictagger mode=inference run.id=first network=a21 data.downsample=2 network.depth=5

  MODE     train, inference, iotest, visualize
  RECIPE   {recipes}
  GROUP    {groups}

  --cfg job [--resolve] [--package GROUP]   show the configuration instead of running
  --multirun, -m                            run all combinations of values like network.depth=3,4
  --shell-completion, -sc install=bash      complete words in the shell
  --version                                 show the version
  --hydra-help                              more of hydra's flags

docs/cosmictagger.md explains each field. The fields of {recipe} and their values:

{fields}"""


def main(words: Sequence[str] | None = None, *, console: bool = True) -> int:
    """Run one command line and return its exit code; errors are reported in one line.

    Without ``console``, a run logs only to its file.
    """
    given = list(sys.argv[1:] if words is None else words)
    try:
        _answer(given, console)
    except (CosmicTaggerError, pilotage.PilotageError) as error:
        print(f"cosmictagger: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader, such as head, has closed the pipe; Python would report that when it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt as interrupt:
        how_to_continue = str(interrupt)
    else:
        return 0
    # After `except`, where the interrupted frames are gone: a progress bar that one of them held has printed its end.
    print("; ".join(filter(None, ("cosmictagger: interrupted", how_to_continue))), file=sys.stderr)
    return 130


def _answer(given: list[str], console: bool) -> None:
    line = parse(given)
    if line.version:
        print(f"cosmictagger of Pilotage {pilotage.__version__}")
    elif line.for_hydra:
        _let_hydra_answer(line, given)
    elif line.help or not given:
        print(_usage(line))
    elif line.cfg is not None:
        composing = _hydra()
        print(composing.shown(line.cfg, line.words, line.recipe, package=line.package, resolve=line.resolve), end="")
    elif line.multirun:
        _run_all(given, line, console)
    else:
        _run(given, _hydra().configuration(line.words, line.recipe), console)


def _let_hydra_answer(line: CommandLine, given: list[str]) -> None:
    """Hydra's own program answers flags such as ``--shell-completion``."""
    composing = _hydra()
    import hydra

    composing.store_groups()
    before, sys.argv = sys.argv, [sys.argv[0], *given]
    try:
        hydra.main(version_base="1.3", config_path=None, config_name=line.recipe)(lambda config: None)()
    finally:
        sys.argv = before


def _run_all(given: list[str], line: CommandLine, console: bool) -> None:
    """Run every combination of the listed values, one after the other, each in its own folder."""
    composing = _hydra()
    from cosmictagger.configuration.checks import OF_VALUES, check

    jobs = composing.sweeps(line.words)
    configs = [composing.configuration(words, line.recipe) for words in jobs]
    for config in configs:
        check(config, OF_VALUES)
    folders = [config.output_dir for config in configs]
    for number, (words, config) in enumerate(zip(jobs, configs, strict=True)):
        if folders.count(folders[number]) > 1:
            config.output_dir = str(Path(config.output_dir) / f"job_{number}")
        print(f"Job {number + 1} of {len(jobs)}: {' '.join(words)}", flush=True)
        _run(words, config, console)


def _run(given: list[str], config: Configuration, console: bool) -> None:
    # Spinning threads slow each other down as soon as another process uses a core. Torch reads this when imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from cosmictagger.configuration.checks import BEFORE_IMPORTS, check
    from cosmictagger.configuration.process_settings import divide
    from cosmictagger.devices.choosing import device_for, environment_for

    notice = divide(config, given, pilotage.world_here())
    check(config, BEFORE_IMPORTS)
    os.environ.update(environment_for(config))
    check(config)
    folder = Path(config.output_dir)
    from cosmictagger.records.process_log import process_log

    processes = device_for(config).join(config.run)
    with process_log(folder, writes=processes.writes, console=console) as log:
        log.info("Dumping launch arguments.")
        log.info(" ".join([sys.argv[0], *given]))
        log.info("-- CONFIG --")
        for line in _hydra().resolved_lines(config):
            log.info(line)
        if notice:
            log.warning(notice)
        _seed(config, processes)
        try:
            _mode(config)(config, folder, processes)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(_how_to_continue(config, folder)) from None
    processes.leave()


def _how_to_continue(config: Configuration, folder: Path) -> str:
    from cosmictagger.configuration.choices import ModeKind
    from cosmictagger.records.checkpoints import Checkpoints

    if config.mode.name is not ModeKind.train:
        return "the same command starts over"
    latest = Checkpoints(folder / "checkpoints").latest()
    if latest is None:
        return "no checkpoint was saved yet, so the same command starts over"
    return f"the same command resumes from the last checkpoint, {latest.name}"


def _hydra() -> ModuleType:
    try:
        from cosmictagger.configuration import compose
    except ImportError:
        raise ConfigurationError("The command needs hydra. Install it with pip install 'pilotage[cosmic]'.") from None
    return compose


def _seed(config: Configuration, processes: Processes) -> None:
    import torch

    from cosmictagger.records.process_log import LOGGER

    if config.run.threads:
        torch.set_num_threads(config.run.threads)
    seed = processes.broadcast(config.framework.seed or time.time_ns() % 2**31)
    torch.manual_seed(seed)
    LOGGER.info("Seed of weights and random streams: %d", seed)


def _mode(config: Configuration) -> Callable[[Configuration, Path, Processes], None]:
    from cosmictagger.configuration.choices import ModeKind

    match config.mode.name:
        case ModeKind.train:
            from cosmictagger.modes.train import train

            return train
        case ModeKind.iotest:
            from cosmictagger.modes.iotest import iotest

            return iotest
        case ModeKind.inference:
            from cosmictagger.modes.inference import infer

            return infer
        case ModeKind.visualize:
            from cosmictagger.modes.visualize import visualize

            return visualize


def _usage(line: CommandLine) -> str:
    composing = _hydra()
    from cosmictagger.configuration.recipes import RECIPES

    groups = "; ".join(f"{group}: {', '.join(members)}" for group, members in composing.MEMBERS.items())
    fields = composing.shown("job", line.words, line.recipe).rstrip()
    return USAGE.format(recipes=", ".join(RECIPES), groups=groups, recipe=line.recipe, fields=fields)
