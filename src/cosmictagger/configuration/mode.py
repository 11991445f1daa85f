"""The group ``mode``: train, iotest, inference or visualize."""

from __future__ import annotations

from dataclasses import dataclass, field

from cosmictagger.configuration.choices import LossBalanceScheme, ModeKind, OptimizerKind, ScheduleKind


@dataclass
class LrSchedule:
    """The learning rate as version 2.1 sets it; with ``warmup``, as version 2.0 does."""

    name: ScheduleKind = ScheduleKind.warmup
    peak_learning_rate: float = 1e-3
    decay_floor: float = 1e-4
    """Where the decay of standard and one_cycle ends."""

    decay_epochs: int = 5
    """Epochs of decay at the end, of standard and one_cycle."""

    min_learning_rate: float = 1e-3
    """Where the cycle of one_cycle begins and ends."""


@dataclass
class Optimizer:
    """How the weights are updated."""

    learning_rate: float = 3e-4
    """The peak of the schedule ``warmup``."""

    lr_schedule: LrSchedule = field(default_factory=LrSchedule)

    loss_balance_scheme: LossBalanceScheme = LossBalanceScheme.focal
    name: OptimizerKind = OptimizerKind.adam
    gradient_accumulation: int = 1
    """Batches whose gradients are summed before one update."""


@dataclass
class Mode:
    """Fields of every mode."""

    name: ModeKind = ModeKind.train
    no_summary_images: bool = True
    weights_location: str = ""
    """A checkpoint or a folder of checkpoints; empty means the run's own."""

    quantization_aware: bool = False
    """Simulate 8-bit integer convolutions; weights trained this way also need it for inference."""


@dataclass
class Train(Mode):
    """Training with periodic validation."""

    name: ModeKind = ModeKind.train
    checkpoint_iteration: int = 500
    summary_iteration: int = 1
    logging_iteration: int = 1
    optimizer: Optimizer = field(default_factory=Optimizer)


@dataclass
class Iotest(Mode):
    """Reading only, to measure its speed."""

    name: ModeKind = ModeKind.iotest
    start_index: int = 0


@dataclass
class Inference(Mode):
    """Predictions for a file, and a report."""

    name: ModeKind = ModeKind.inference
    start_index: int = 0
    summary_iteration: int = 1
    logging_iteration: int = 1
    optimizer: Optimizer = field(default_factory=Optimizer)
    """Only its loss_balance_scheme matters here."""


@dataclass
class Visualize(Mode):
    """Images of events: charge, label and prediction."""

    name: ModeKind = ModeKind.visualize
    start_index: int = 0
    events: int = 4
    """How many events to draw."""
