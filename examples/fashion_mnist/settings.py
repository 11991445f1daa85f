"""The settings of a run, and the record of a training run."""

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
SHIPPED_PICTURE = HERE / "images" / "trousers.png"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings from the command line."""

    epochs: int = 5
    batch_size: int = 16
    device_iterations: int = 1
    seed: int = 42
    subset: int | None = None
    data: str | None = None
    output: Path = Path("output")
    plain: bool = False
    images: tuple[Path, ...] = (SHIPPED_PICTURE,)

    @property
    def classifier(self) -> Path:
        return self.output / "classifier.pth"

    @property
    def samples(self) -> Path:
        return self.output / "sample_images.png"

    @property
    def confusion(self) -> Path:
        return self.output / "confusion_matrix.png"

    @property
    def before_after(self) -> Path:
        return self.output / "image_before_after.png"


@dataclass(frozen=True, kw_only=True)
class TrainingRecord:
    """What happened during training."""

    losses: tuple[float, ...]
    """The mean loss of each epoch."""

    steps: int
    """Weight updates."""

    images_per_epoch: int
    seconds: float
    """Time in the training loop, without compilation."""

    preparation: float
    """Seconds for compilation."""

    @property
    def steps_per_second(self) -> float:
        return self.steps / self.seconds
