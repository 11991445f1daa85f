"""The command line of `python examples/fashion_mnist`."""

import argparse
import os
import sys
from pathlib import Path
from typing import NoReturn

from settings import SHIPPED_PICTURE, Settings

from pilotage.options.choices import Tier

DESCRIPTION = "Train a small network to recognise garments, as one program on the device."


class OneLineParser(argparse.ArgumentParser):
    """Reports an error in one line and refers to --help."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see --help)\n")


def parsed(arguments: list[str] | None = None) -> tuple[str, Settings]:
    """The command and its settings; exits with status 2 if they contradict each other."""
    parser = _parser()
    given = parser.parse_args(arguments)
    _check_plain(parser, given)
    # Pilotage reads these variables when it compiles.
    for name in ("backend", "tier"):
        if getattr(given, name) is not None:
            os.environ[f"PILOTAGE_{name.upper()}"] = getattr(given, name)
    chosen = {name: value for name, value in vars(given).items() if name in Settings.__dataclass_fields__}
    return given.command, Settings(**chosen)


def _parser() -> OneLineParser:
    parser = OneLineParser(prog="fashion_mnist", description=DESCRIPTION)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    common, data, training = (argparse.ArgumentParser(add_help=False) for _ in range(3))
    common.add_argument(
        "--output", type=Path, default=Path("output"), metavar="DIR", help="directory for files (%(default)s)"
    )
    common.add_argument("--plain", action="store_true", help="ordinary PyTorch, without importing poptorch")
    common.add_argument("--backend", metavar="NAME", help="device to run on: cpu, cuda, hpu (the best present)")
    common.add_argument("--tier", choices=[tier.value for tier in Tier], help="how the program is executed")
    data.add_argument(
        "--data", metavar="DIR|generated", help="directory of Fashion-MNIST, or drawn garments (default: search)"
    )
    data.add_argument("--subset", type=_count, metavar="N", help="use only the first N images (default: all)")
    training.add_argument("--epochs", type=_count, default=5, metavar="N", help="passes over the data (%(default)s)")
    training.add_argument("--batch-size", type=_count, default=16, metavar="N", help="images per step (%(default)s)")
    training.add_argument(
        "--device-iterations", type=_count, default=1, metavar="N", help="steps per call to the device (%(default)s)"
    )
    training.add_argument(
        "--seed", type=int, default=42, metavar="N", help="seed of weights and shuffling (%(default)s)"
    )
    commands.add_parser("all", parents=[common, data, training], help="train, evaluate, predict and print a summary")
    commands.add_parser("train", parents=[common, data, training], help="train and save classifier.pth")
    commands.add_parser("evaluate", parents=[common, data], help="test the saved classifier")
    predict = commands.add_parser("predict", parents=[common], help="classify your own pictures")
    predict.add_argument(
        "images",
        nargs="*",
        type=Path,
        default=[SHIPPED_PICTURE],
        metavar="IMAGE",
        help="image files (default: a drawing of trousers)",
    )
    return parser


def _check_plain(parser: OneLineParser, given: argparse.Namespace) -> None:
    if not given.plain:
        return
    for name, neutral in (("backend", None), ("tier", None), ("device_iterations", 1)):
        if getattr(given, name, neutral) != neutral:
            parser.error(f"--{name.replace('_', '-')} needs poptorch, which --plain does not use: remove one of them")


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return number


def complain(message: str) -> None:
    """One line for the user."""
    print(f"fashion_mnist: {message}", file=sys.stderr)
