"""The group ``mode``: train, iotest, inference or visualize."""

from __future__ import annotations

from dataclasses import dataclass, field

from cosmictagger.configuration.choices import LossBalanceScheme, ModeKind, OptimizerKind


@dataclass
class Optimizer:
    """How the weights are updated."""

    learning_rate: float = 3e-4
    """The height of the schedule's plateau."""

    loss_balance_scheme: LossBalanceScheme = LossBalanceScheme.focal
    name: OptimizerKind = OptimizerKind.adam
    gradient_accumulation: int = 1
    """Batches whose gradients are summed before one update."""


@dataclass
class Mode:
    """What every mode has."""

    name: ModeKind = ModeKind.train
    no_summary_images: bool = True
    weights_location: str = ""
    """A checkpoint, or a folder that holds checkpoints; empty takes the run's own."""

    quantization_aware: bool = False
    """Compute as if convolutions had integers of eight bits; to be said for what was trained so, too."""


@dataclass
class Train(Mode):
    """Training, with validation in between."""

    name: ModeKind = ModeKind.train
    checkpoint_iteration: int = 500
    summary_iteration: int = 1
    logging_iteration: int = 1
    optimizer: Optimizer = field(default_factory=Optimizer)


@dataclass
class Iotest(Mode):
    """Reading alone, as fast as it goes."""

    name: ModeKind = ModeKind.iotest
    start_index: int = 0


@dataclass
class Inference(Mode):
    """Predictions for a whole file, and a report on them."""

    name: ModeKind = ModeKind.inference
    start_index: int = 0
    summary_iteration: int = 1
    logging_iteration: int = 1
    optimizer: Optimizer = field(default_factory=Optimizer)
    """Its loss_balance_scheme alone matters here."""


@dataclass
class Visualize(Mode):
    """Images of events: charge, label and prediction."""

    name: ModeKind = ModeKind.visualize
    start_index: int = 0
    events: int = 4
    """How many events are drawn."""
