"""PopTorch's options for a configuration."""

from __future__ import annotations

import sys

import torch

import pilotage
import popdist
import popdist.poptorch
import poptorch
from cosmictagger.configuration.run import Run
from cosmictagger.devices.graphcore.stages import strategy_for
from cosmictagger.records.process_log import LOGGER
from cosmictagger.training.precision import NumberTypes


def options_for(
    run: Run, numbers: NumberTypes, stages: list[str], *, accumulation: int = 1, training: bool
) -> poptorch.Options:
    """The options of a training or inference model."""
    options = _placed(run)
    # Instances must draw the same numbers, and every process has the same seed.
    options.randomSeed(torch.initial_seed() % 2**31)
    options.outputMode(poptorch.OutputMode.All)
    options.showCompilationProgressBar(sys.stderr.isatty() and pilotage.world_here().rank == 0)
    # PopTorch cannot exchange statistics of normalisation: each replica keeps its own, and the first one's are saved.
    options.broadcastBuffers(False)
    if stages:
        options.setExecutionStrategy(strategy_for(stages, accumulation if training else 1))
    if training:
        options.Training.gradientAccumulation(accumulation)
        _precision(options, numbers)
    return options


def local_replicas(run: Run) -> int:
    """Replicas of this process; under poprun, poprun sets them."""
    if not popdist.isPopdistEnvSet():
        return run.num_replicas
    if run.num_replicas != 1:
        LOGGER.info("run.num_replicas=%d is ignored: poprun sets the replicas.", run.num_replicas)
    LOGGER.info("Num of local replicas: %d", popdist.getNumLocalReplicas())
    return int(popdist.getNumLocalReplicas())


def _placed(run: Run) -> poptorch.Options:
    if popdist.isPopdistEnvSet():
        return popdist.poptorch.Options(ipus_per_replica=run.stages)
    options = poptorch.Options()
    options.replicationFactor(run.num_replicas)
    world = pilotage.world_here()
    if run.distributed:
        options.Distributed.configureProcessId(world.rank, world.size)
    return options


def _precision(options: poptorch.Options, numbers: NumberTypes) -> None:
    if numbers.activations is torch.float16:
        options.Training.setAutomaticLossScaling(True)
    if numbers.weights is torch.float16:
        # Without it, updates smaller than half a float16 step would vanish.
        options.Precision.enableStochasticRounding(True)
