"""The rule about initial weights, which must exist."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pilotage
from cosmictagger.configuration.choices import ModeKind
from cosmictagger.configuration.root import Configuration
from cosmictagger.errors import CheckpointError


def weights(config: Configuration) -> Iterator[str]:
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
