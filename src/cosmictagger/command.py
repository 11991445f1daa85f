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

Every run prints its whole configuration first; docs/cosmictagger.md explains each field."""


def main(words: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; errors are reported in one line."""
    given = list(sys.argv[1:] if words is None else words)
    try:
        if not given or {"-h", "--help"} & set(given):
            print(_usage())
            return 0
        _run(given)
    except (CosmicTaggerError, pilotage.PilotageError) as error:
        print(f"cosmictagger: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as interrupt:
        print("; ".join(filter(None, ("cosmictagger: interrupted", str(interrupt)))), file=sys.stderr)
        return 130
    return 0


def _run(given: list[str]) -> None:
    # Spinning threads slow each other down as soon as another process uses a core. Torch reads this when imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    recipe, overrides = split_recipe(given)
    composing = _hydra()
    config = composing.configuration(overrides, recipe)
    from cosmictagger.configuration.checks import BEFORE_IMPORTS, check
    from cosmictagger.devices.choosing import device_for, environment_for

    check(config, BEFORE_IMPORTS)
    os.environ.update(environment_for(config))
    check(config)
    folder = Path(config.output_dir)
    from cosmictagger.records.process_log import process_log

    processes = device_for(config).join(config.run)
    with process_log(folder, writes=processes.writes) as log:
        log.info("Dumping launch arguments.")
        log.info(" ".join([sys.argv[0], *given]))
        log.info("-- CONFIG --")
        for line in composing.resolved_lines(config):
            log.info(line)
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
        return "there is no checkpoint yet, so the same command starts over"
    return f"the same command resumes from the last checkpoint, {latest.name}"


def split_recipe(words: Sequence[str]) -> tuple[str, list[str]]:
    """Split off the recipe that ``--config-name`` names."""
    recipe, rest, waiting = "config", [], False
    for word in words:
        if waiting:
            recipe, waiting = word, False
        elif word in ("--config-name", "-cn"):
            waiting = True
        elif word.startswith("--config-name="):
            recipe = word.partition("=")[2]
        elif word.startswith("-"):
            raise ConfigurationError(f"Unknown option {word}. Use --config-name or --help.")
        else:
            rest.append(word)
    if waiting:
        raise ConfigurationError("--config-name needs a name after it.")
    return recipe, rest


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


def _usage() -> str:
    composing = _hydra()
    from cosmictagger.configuration.recipes import RECIPES

    groups = "; ".join(f"{group}: {', '.join(members)}" for group, members in composing.MEMBERS.items())
    return USAGE.format(recipes=", ".join(RECIPES), groups=groups)
