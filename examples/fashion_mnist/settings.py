"""What a run is asked to do, and what a training run reports."""

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
SHIPPED_PICTURE = HERE / "images" / "trousers.png"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that the command line decides."""

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
    """Spent in the loop; preparing the program comes before it."""

    preparation: float
    """Seconds until the program was ready to run."""

    @property
    def steps_per_second(self) -> float:
        return self.steps / self.seconds
