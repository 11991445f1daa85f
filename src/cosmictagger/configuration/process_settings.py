"""What a configuration means for the processes of a launcher: one network in all of them, or one in each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cosmictagger.configuration.compute_mode import shares_one_network
from cosmictagger.configuration.root import Configuration
from cosmictagger.configuration.words import key_of
from pilotage import World


def divide(config: Configuration, words: Sequence[str], world: World) -> str | None:
    """Fill in what depends on the launcher; returns a warning if ``run.distributed=false`` changes its meaning.

    Several processes train one network unless ``run.distributed=false`` is given: true is the original's default, which
    a single process cannot have here. Given false, each process has a folder of its own. Instances of PopDist share
    their network all the same; there each of them reads a whole minibatch, as in the published ports.
    """
    if world.size == 1:
        return None
    if "run.distributed" not in map(key_of, words):
        config.run.distributed = True
    if shares_one_network(config.run, world):
        return None if config.run.distributed else _enlarge_minibatch(config, world)
    if world.rank:
        config.output_dir = str(Path(config.output_dir) / f"process_{world.rank}")
    return (
        f"{world.launcher} started {world.size} processes, and run.distributed=false: each of them works "
        f"independently and exchanges nothing. This is process {world.rank}; its files are in {config.output_dir}. Use "
        "run.distributed=true for one network."
    )


def _enlarge_minibatch(config: Configuration, world: World) -> str:
    """Give each instance a whole minibatch; returns what was changed."""
    each = config.run.minibatch_size
    config.run.minibatch_size = each * world.size
    return (
        f"run.distributed=false under {world.launcher}: each of the {world.size} instances reads "
        f"run.minibatch_size={each} events per step, {config.run.minibatch_size} in total, as in the published ports. "
        "They train one network. With run.distributed=true, run.minibatch_size counts the events of all instances."
    )
