"""The flags of a command line: hydra's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from cosmictagger.errors import ConfigurationError

WITH_VALUE = {
    "--config-name": "recipe",
    "-cn": "recipe",
    "--cfg": "cfg",
    "-c": "cfg",
    "--package": "package",
    "-p": "package",
}
SWITCHES = {
    "--multirun": "multirun",
    "-m": "multirun",
    "--resolve": "resolve",
    "--help": "help",
    "-h": "help",
    "--version": "version",
    "--run": "run",
    "-r": "run",
}
HYDRAS = ("--shell-completion", "-sc", "--hydra-help", "--info", "-i")
"""Flags that hydra answers by itself."""

CFG = ("job", "hydra", "all")
OTHERS = {
    "--hmp": "Habana's mixed precision is run.precision=bfloat16 here",
    "--config-path": "recipes are built in: use --config-name",
    "-cp": "recipes are built in: use --config-name",
    "--config-dir": "recipes are built in: use --config-name",
    "-cd": "recipes are built in: use --config-name",
}
"""Flags that have no meaning here, and what to use."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandLine:
    """A command line, taken apart."""

    recipe: str = "config"
    words: tuple[str, ...] = ()
    """Overrides: groups and fields."""

    cfg: str | None = None
    """What to show instead of running: job, hydra or all."""

    package: str | None = None
    resolve: bool = False
    multirun: bool = False
    help: bool = False
    version: bool = False
    run: bool = False
    """Hydra's flag for a single run, which is the default."""

    for_hydra: bool = False
    """Whether hydra answers the whole line."""


def parse(words: Sequence[str]) -> CommandLine:
    """Take a command line apart; an unknown flag is refused with the nearest known one."""
    settings: dict[str, Any] = {}
    overrides: list[str] = []
    waiting = None
    for word in words:
        name, equals, value = word.partition("=")
        if waiting is not None:
            settings[WITH_VALUE[waiting]], waiting = word, None
        elif name in HYDRAS:
            settings["for_hydra"] = True
        elif not word.startswith("-"):
            overrides.append(word)
        elif name in WITH_VALUE and equals:
            settings[WITH_VALUE[name]] = value
        elif name in WITH_VALUE:
            waiting = name
        elif name in SWITCHES and not equals:
            settings[SWITCHES[name]] = True
        else:
            raise ConfigurationError(_unknown(word, name))
    if waiting is not None:
        raise ConfigurationError(f"{waiting} needs a name after it.")
    return _checked(CommandLine(words=tuple(overrides), **settings))


def _checked(line: CommandLine) -> CommandLine:
    if line.cfg is not None and line.cfg not in CFG:
        raise ConfigurationError(f"--cfg {line.cfg} is unknown. Choose one of: {', '.join(CFG)}.")
    if line.cfg is None and (line.resolve or line.package):
        raise ConfigurationError("--resolve and --package belong to --cfg: use --cfg job.")
    return line


def _unknown(word: str, name: str) -> str:
    for known, advice in OTHERS.items():
        if name.startswith(known):
            return f"{word} is not available: {advice}."
    flags = [*WITH_VALUE, *SWITCHES, *HYDRAS]
    near = get_close_matches(name, flags, 1)
    meant = f"Did you mean {near[0]}?" if near else "Use --help, --config-name, --cfg or --multirun."
    return f"Unknown option {word}. {meant}"
