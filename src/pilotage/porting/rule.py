"""A rule of the port: what it does, why, an example, and the function that does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pilotage.porting.target import Target

if TYPE_CHECKING:
    from pilotage.porting.porting import Porting

__all__ = ["Example", "GuideEdit", "Rule"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """An example script and its port."""

    before: str
    after: str = ""
    """The script with the edits of this rule only; empty if the rule makes none."""

    finds: str = ""
    """A part of the finding that the rule makes; empty if it makes none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GuideEdit:
    """An edit of a published guide that a rule does not follow."""

    guide: str
    edit: str
    instead: str
    """What the port does instead, and why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """One rule; each has a file of its own, which calls it ``RULE``."""

    name: str
    """Words with hyphens, as `--explain` takes them."""

    targets: frozenset[Target]
    what: str
    why: str
    example: Example
    apply: Callable[[Porting], None]
    """Looks at the whole project and plans edits and findings."""

    not_followed: tuple[GuideEdit, ...] = ()
    """Where published guides do it in another way."""
