"""The entry point of `pilotage`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import pilotage
from pilotage.cli import cache, completion, doctor, monitor, port, predict, profile, prove, report, run, scan
from pilotage.cli.command import Command
from pilotage.errors import PilotageError

__all__ = ["COMMANDS", "main"]

COMMANDS: tuple[Command, ...] = (
    cache.COMMAND,
    completion.COMMAND,
    doctor.COMMAND,
    monitor.COMMAND,
    port.COMMAND,
    predict.COMMAND,
    profile.COMMAND,
    prove.COMMAND,
    report.COMMAND,
    run.COMMAND,
    scan.COMMAND,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = build_parser()
    parsed = parser.parse_args(arguments)
    command: Command | None = parsed.command
    if command is None:
        parser.print_help()
        return 0
    try:
        return command.run(parsed)
    except PilotageError as error:
        print(f"pilotage {command.name}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        pass
    # After `except`, where the interrupted frames are gone: a progress bar that one of them held has printed its end.
    print(f"pilotage {command.name}: interrupted", file=sys.stderr)
    return 130


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="pilotage",
        description="Guides a PyTorch model onto an accelerator and runs it there as one compiled program.",
    )
    parser.add_argument("-V", "--version", action="version", version=f"pilotage {pilotage.__version__}")
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for command in COMMANDS:
        subparser = commands.add_parser(command.name, help=command.summary, description=command.summary)
        subparser.set_defaults(command=command)
        command.add_arguments(subparser)
    return parser
