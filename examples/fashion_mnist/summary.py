"""The summary at the end of a run, in colour if `rich` is installed."""

from collections.abc import Sequence
from pathlib import Path

from metrics import Evaluation
from predict import Prediction
from settings import TrainingRecord

Rows = Sequence[tuple[str, str]]


def training_rows(record: TrainingRecord, through: str) -> Rows:
    compiled = [("compiled in", f"{record.preparation:.1f} s")] if record.preparation else []
    return [
        ("trained through", through),
        ("updates", f"{record.steps:,} on {record.images_per_epoch:,} images an epoch"),
        ("loss by epoch", " → ".join(f"{loss:.3f}" for loss in record.losses)),
        *compiled,
        ("training loop", f"{record.seconds:.1f} s"),
        ("steps per second", f"{record.steps_per_second:,.0f}"),
    ]


def evaluation_rows(result: Evaluation) -> Rows:
    overall = (f"accuracy over {result.images:,} test images", f"{result.accuracy:7.2%}")
    return [overall, *((name, f"{share:7.2%} {bar(share)}") for name, share in result.per_class)]


def prediction_rows(prediction: Prediction) -> Rows:
    return [(name, f"{probability:7.2%} {bar(probability)}") for name, probability in prediction.ranking]


def file_rows(files: dict[str, Path]) -> Rows:
    return [(what, str(path)) for what, path in files.items()]


def bar(share: float, width: int = 24) -> str:
    """A bar for a number from 0 to 1."""
    return "█" * round(share * width) if share == share else ""


def show(title: str, rows: Rows) -> None:
    """Print a titled table of two columns."""
    width = max(len(name) for name, _ in rows)
    try:
        from rich.console import Console
        from rich.text import Text
    except ImportError:
        print("", title, *(f"{name:<{width}}  {value}" for name, value in rows), sep="\n")
        return
    console = Console()
    console.print()
    # Soft wrapping keeps long paths in one piece for copying.
    console.print(Text(title, style="bold"), soft_wrap=True)
    for name, value in rows:
        words, blocks = value.rstrip("█"), value[len(value.rstrip("█")) :]
        line = Text.assemble((f"{name:<{width}}", "cyan"), "  ", words, (blocks, "blue"))
        console.print(line, soft_wrap=True)
