"""What may be typed after a command, read from its parser."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Flag", "Grammar", "grammar_of"]

_FILES = ("DIR", "FILE", "FOLDER", "PATH", "SCRIPT")
"""How the help writes the names of files."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Flag:
    """An option and its spellings."""

    names: tuple[str, ...]
    takes_value: bool
    values: tuple[str, ...]
    """The values that are allowed, where they are few."""

    takes_files: bool
    """Whether its value is the name of a file or folder."""

    meaning: str
    """The first words of its help."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Grammar:
    """The words of one command."""

    path: tuple[str, ...]
    """The command as it is typed: ``("pilotage", "cache")``."""

    meaning: str
    flags: tuple[Flag, ...]
    words: tuple[str, ...]
    """Words that are allowed without dashes, besides the names of further commands."""

    takes_files: bool
    commands: tuple[Grammar, ...]

    def everywhere(self) -> list[Grammar]:
        """This grammar and those of all further commands."""
        return [self, *(each for command in self.commands for each in command.everywhere())]


def grammar_of(parser: argparse.ArgumentParser, path: tuple[str, ...], meaning: str = "") -> Grammar:
    """Read a parser and the parsers of its commands."""
    flags, words, commands, takes_files = [], [], [], False
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {each.dest: each.help or "" for each in action._choices_actions}
            commands += [
                grammar_of(child, (*path, name), helps.get(name, "")) for name, child in action.choices.items()
            ]
        elif action.option_strings:
            flags.append(_flag(action))
        elif action.choices is not None:
            words += [str(choice) for choice in action.choices]
        else:
            takes_files = True
    return Grammar(
        path=path,
        meaning=meaning,
        flags=tuple(flags),
        words=tuple(words),
        takes_files=takes_files,
        commands=tuple(commands),
    )


def _flag(action: argparse.Action) -> Flag:
    shown = str(action.metavar or "")
    values = action.choices or (shown.split("|") if "|" in shown else ())
    return Flag(
        names=tuple(action.option_strings),
        takes_value=action.nargs != 0 and action.nargs != "?",
        values=tuple(str(value) for value in values),
        takes_files=action.type is Path or shown in _FILES,
        meaning=(action.help or "").partition(";")[0],
    )
