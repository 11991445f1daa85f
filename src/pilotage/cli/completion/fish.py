"""Completion in fish, with the meaning of each word beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pilotage.cli.completion.grammar import Flag, Grammar

__all__ = ["fish_script"]


def fish_script(commands: Iterable[Grammar]) -> str:
    """One line for each word."""
    return "\n".join(line for command in commands for each in command.everywhere() for line in _lines(each)) + "\n"


def _lines(grammar: Grammar) -> Iterator[str]:
    program, *inner = grammar.path
    condition = _condition(inner, [command.path[-1] for command in grammar.commands])
    start = f"complete -c {program}{condition}"
    if not grammar.takes_files:
        yield f"{start} -f"
    for command in grammar.commands:
        yield f"{start} -f -a {command.path[-1]}{_described(command.meaning)}"
    for word in grammar.words:
        yield f"{start} -f -a {word}"
    for flag in grammar.flags:
        yield f"{start}{_spellings(flag)}{_value(flag)}{_described(flag.meaning)}"


def _condition(inner: list[str], commands: list[str]) -> str:
    if inner:
        return f" -n '__fish_seen_subcommand_from {inner[-1]}'"
    return f" -n 'not __fish_seen_subcommand_from {' '.join(commands)}'" if commands else ""


def _spellings(flag: Flag) -> str:
    return "".join(
        f" -l {name.removeprefix('--')}"
        if name.startswith("--")
        else f" {'-s' if len(name) == 2 else '-o'} {name.removeprefix('-')}"
        for name in flag.names
    )


def _value(flag: Flag) -> str:
    if flag.values:
        return f" -x -a '{' '.join(flag.values)}'"
    if flag.takes_files:
        return " -r -F"
    return " -x" if flag.takes_value else ""


def _described(meaning: str) -> str:
    text = meaning.replace("\\", "").replace("'", "\\'").replace("%%", "%")
    return f" -d '{text}'" if text else ""
