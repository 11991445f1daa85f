"""Run `pilotage prove`."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pilotage.errors import PilotageError, ProofError

if TYPE_CHECKING:
    from pilotage.proof.proof import Proof, Request

__all__ = ["request_of", "run"]

SAME, DIFFERENT, NOT_RUN = 0, 1, 2
_STYLES = {"good": "bold green", "bad": "bold red", "strong": "bold", "faint": "dim"}


def run(arguments: Namespace) -> int:
    """Run the command; 0: the same, no findings, 1: diverged or findings, 2: not run, or a script failed."""
    from pilotage.proof.picture import draw, require_matplotlib
    from pilotage.proof.process_tree import EndedBySignal
    from pilotage.proof.proof import prove
    from pilotage.proof.result_file import write_result

    try:
        request = request_of(arguments)
        if arguments.picture not in (None, "off"):
            require_matplotlib(Path(arguments.picture))
        _require_files(arguments)
        proof = prove(request, _tell)
        _clear()
        show(proof)
        # First, since a picture can be drawn from it again.
        if arguments.json is not None:
            write_result(proof, arguments.json)
        picture = _picture_of(arguments, proof)
        if picture is not None:
            draw(proof, picture)
            print(f"\nPicture: {picture}")
        if arguments.json is not None:
            print(f"Result: {arguments.json}")
    except (PilotageError, OSError) as error:
        _clear()
        print(f"pilotage prove: {error}", file=sys.stderr)
        return NOT_RUN
    except EndedBySignal as end:
        _clear()
        print(f"pilotage prove: ended by {end.name}", file=sys.stderr)
        return end.status
    for failure in proof.failures:
        print(f"pilotage prove: {failure}", file=sys.stderr)
    if proof.failures:
        return NOT_RUN
    return SAME if proof.is_same else DIFFERENT


def request_of(arguments: Namespace) -> Request:
    """What a command line asks for."""
    from pilotage.proof.proof import Request
    from pilotage.proof.result_file import read_request

    if arguments.repeat is not None:
        if arguments.scripts or arguments.before_command or arguments.after_command:
            raise ProofError("--repeat takes the scripts from its file: give no others.")
        return replace(read_request(arguments.repeat), timeout=arguments.timeout)
    scripts = list(arguments.scripts)
    if len(scripts) > 2:
        raise ProofError(f"Give at most two scripts, BEFORE and AFTER; the arguments of both follow --: {scripts[2]!r}")
    before = _command(arguments.before_command)
    after = _command(arguments.after_command)
    if len(scripts) == 2:
        before = before or _script(scripts[0], arguments.script_arguments)
        after = after or _script(scripts[1], arguments.script_arguments)
    elif scripts and before is not None:
        after = after or _script(scripts[0], arguments.script_arguments)
    elif scripts and after is not None:
        # One script and a command for the port: the script is what the command runs, unless it is the original.
        if scripts[0] not in after:
            before = _script(scripts[0], arguments.script_arguments)
    elif scripts:
        after = _script(scripts[0], arguments.script_arguments)
    if after is None:
        raise ProofError("Give two scripts, BEFORE and AFTER, or one to audit. `pilotage prove --help` says more.")
    return Request(
        before=before,
        after=after,
        steps=arguments.steps,
        seed=arguments.seed,
        timeout=arguments.timeout,
        align=arguments.align,
    )


def _command(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ProofError(f"The command {text!r} cannot be read: {error}.") from None
    if not words:
        raise ProofError("A command is empty.")
    # A launcher that was installed beside this Python is found without being on the path.
    beside = Path(sys.executable).parent / words[0]
    if "/" not in words[0] and shutil.which(words[0]) is None and beside.is_file():
        words[0] = str(beside)
    return tuple(words)


def _script(path: str, arguments: Sequence[str]) -> tuple[str, ...]:
    if not Path(path).is_file():
        raise ProofError(f"The script {path!r} does not exist.")
    return (sys.executable, str(Path(path)), *arguments)


def _require_files(arguments: Namespace) -> None:
    """Raise before anything runs if a result could not be written."""
    for given in (arguments.json, None if arguments.picture in (None, "off") else Path(arguments.picture)):
        if given is None:
            continue
        if given.is_dir():
            raise ProofError(f"{str(given)!r} is a folder: give the name of a file.")
        if not given.parent.is_dir():
            raise ProofError(f"The folder {str(given.parent)!r} for {given.name} does not exist.")
        if not os.access(given.parent, os.W_OK):
            raise ProofError(f"{given.name} cannot be written to the folder {str(given.parent)!r}.")


def _picture_of(arguments: Namespace, proof: Proof) -> Path | None:
    from pilotage.proof.picture import can_draw

    if arguments.picture == "off":
        return None
    if arguments.picture is not None:
        return Path(arguments.picture)
    if proof.comparison is None or not can_draw():
        return None
    if arguments.json is not None:
        return Path(arguments.json).with_suffix(".png")
    # Nobody asked for this picture, so a folder that cannot be written to is not an error.
    return Path("proof.png") if os.access(".", os.W_OK) else None


def show(proof: Proof) -> None:
    """Print a proof, with colours where the terminal has them."""
    from pilotage.proof.screen import lines_of

    width = shutil.get_terminal_size((100, 24)).columns
    lines = lines_of(proof, min(width, 110))
    encodes = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    if sys.stdout.isatty() and encodes and importlib.util.find_spec("rich") is not None:
        from rich.console import Console
        from rich.text import Text

        console = Console(highlight=False)
        for text, style in lines:
            console.print(Text(text, style=_STYLES.get(style, "")), no_wrap=True, overflow="ignore", crop=False)
        return
    encoding = sys.stdout.encoding or "ascii"
    print("\n".join(text for text, _ in lines).encode(encoding, errors="replace").decode(encoding))


def _tell(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text} …", end="", file=sys.stderr, flush=True)


def _clear() -> None:
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)
