"""The words of a command line: what the original and its versions accept, in the form that hydra composes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from typing import Any

from cosmictagger.errors import ConfigurationError

VARIABLES = "framework.environment_variables."
"""Entries of an open mapping, which hydra wants with plus signs."""

SCHEDULE = "mode.optimizer.lr_schedule"
FILES = ("data.data_directory", "data.file", "data.aux_file")
"""Fields that name a user's own files."""

WITHOUT_EFFECT = {
    "hydra.job_logging": ("disabled", "none"),
    "hydra.hydra_logging": ("disabled", "none"),
    "hydra.output_subdir": ("null",),
    "hydra.job.chdir": ("False", "false"),
    "hydra.run.dir": (".",),
}
"""Settings of hydra that the original sets itself; they are true here as well."""


def accepted(words: Sequence[str]) -> list[str]:
    """Words as hydra composes them: version 2.1's forms of a schedule, and real data if files are named."""
    given = [_entry(_schedule(word)) for word in words]
    keys = [key_of(word) for word in given]
    if any(key.startswith(f"{SCHEDULE}.") for key in keys) and f"{SCHEDULE}.name" not in keys:
        given.append(f"{SCHEDULE}.name=flat")
    if set(FILES) & set(keys) and "data" not in keys:
        given.append("data=real")
    return given


def _schedule(word: str) -> str:
    """Also accept the schedule as a group, and with the plus signs that version 2.1 needed."""
    name, equals, value = word.partition("=")
    bare = name.lstrip("+").replace("/", ".")
    if bare == SCHEDULE:
        return f"{SCHEDULE}.name={value}"
    return f"{bare}{equals}{value}" if bare.startswith(f"{SCHEDULE}.") else word


def _entry(word: str) -> str:
    return f"++{word}" if word.startswith(VARIABLES) else word


def key_of(word: str) -> str:
    """The field or group that a word sets."""
    return re.split(r"[=@]", word.lstrip("+~"), maxsplit=1)[0]


def field_names(node: Any, prefix: str) -> set[str]:
    """The full names of a member's fields."""
    names = set()
    for each in fields(node):
        value, name = getattr(node, each.name), f"{prefix}.{each.name}"
        names |= field_names(value, name) if is_dataclass(value) else {name}
    return names


def check_form(words: Sequence[str]) -> None:
    """Raise if a word sets nothing."""
    for word in words:
        if "=" not in word and not word.startswith("~"):
            raise ConfigurationError(
                f"{word!r} is not a setting. Write GROUP=MEMBER or GROUP.FIELD=VALUE, without spaces around the sign."
            )


def check_hydra(words: Sequence[str]) -> None:
    """Raise if a word changes a setting of hydra that this program does not use."""
    for word in words:
        key, value = key_of(word), word.partition("=")[2]
        if not key.startswith(("hydra.", "hydra/")) or word.startswith("~"):
            continue
        if value not in WITHOUT_EFFECT.get(key.replace("/", "."), ()):
            raise ConfigurationError(
                f"{word} has no effect here: hydra only composes the configuration, and CosmicTagger manages runs, "
                "logs and folders itself. Omit it; output_dir=FOLDER sets the folder of a run."
            )


def suggestion(words: Sequence[str], known: Iterable[str], members: Mapping[str, Collection[str]]) -> str:
    """A sentence with the nearest known name of the first unknown field or member; empty if there is none."""
    names = sorted(known)
    for word in words:
        key, value = key_of(word), word.partition("=")[2]
        if key in members and value not in members[key] and (near := get_close_matches(value, members[key], 1)):
            return f" Did you mean {key}={near[0]}?"
        if key in names or key.replace("/", ".") == SCHEDULE or key.startswith((VARIABLES, "hydra")):
            continue
        # A typo is rarely in the group, and a field may have been given without its group.
        near = get_close_matches(key, names, 1, 0.75) or [name for name in names if name.endswith(f".{key}")][:1]
        if near:
            return f" Did you mean {near[0]}?"
    return ""
