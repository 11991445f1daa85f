"""The words that a run ends with: in colour where `rich` is installed, plain otherwise."""

import sys
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
    """A share of one as a line of blocks."""
    return "█" * round(share * width) if share == share else ""


def show(title: str, rows: Rows) -> None:
    """Print a titled table of two columns."""
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        _show_plainly(title, rows)
        return
    table = Table(title=title, title_justify="left", title_style="bold", show_header=False, box=None, pad_edge=False)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, Text(value))
    # In a file or a pipe nothing should be folded: paths are there to be copied.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 200)
    console.print()
    console.print(table)


def _show_plainly(title: str, rows: Rows) -> None:
    width = max(len(name) for name, _ in rows)
    print(f"\n{title}")
    for name, value in rows:
        print(f"{name:<{width}}  {value}")
