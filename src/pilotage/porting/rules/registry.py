"""All rules, in the order in which they are applied."""

from __future__ import annotations

from pilotage.errors import PortingError
from pilotage.porting.rule import Rule
from pilotage.porting.target import Target

__all__ = ["RULES", "rule_named", "rules_for"]

RULES: tuple[Rule, ...] = ()


def rules_for(target: Target) -> tuple[Rule, ...]:
    """The rules of one target."""
    return tuple(rule for rule in RULES if target in rule.targets)


def rule_named(name: str) -> Rule:
    """The rule with this name."""
    for rule in RULES:
        if rule.name == name:
            return rule
    raise PortingError(f"No rule is named {name!r}. Choose one of: {', '.join(sorted(rule.name for rule in RULES))}.")
