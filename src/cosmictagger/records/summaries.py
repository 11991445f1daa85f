"""TensorBoard files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosmictagger.errors import ConfigurationError

IMAGE_PERIOD = 25
"""Steps between images."""


class Summaries:
    """The TensorBoard files of one folder, ``train`` or ``test``."""

    def __init__(self, folder: Path, *, resumed_at: int = 0) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise ConfigurationError(
                "run.saver=true needs the package tensorboard. Install it, or use run.saver=false."
            ) from None
        self._writer: Any = SummaryWriter(str(folder), purge_step=resumed_at or None)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Add the scalars of a step."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def draw(self, step: int, prediction: NDArray[Any], label: NDArray[Any]) -> None:
        """Add prediction and label of one event (3, H, W): background black, cosmic grey, neutrino white."""
        for name, planes in (("prediction", prediction), ("label", label)):
            for number, plane in enumerate(planes):
                image = plane.astype(np.float32)[None] * 0.5
                self._writer.add_image(f"{name}/plane_{number}", image, step)

    def close(self) -> None:
        """Flush and close."""
        self._writer.close()
