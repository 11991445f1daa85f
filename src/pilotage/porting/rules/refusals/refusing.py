"""Makes the rule of a refusal that the analysis finds."""

from __future__ import annotations

from pilotage.porting.finding import Severity
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.writing.dialect import PROGRAMS

__all__ = ["refusing"]


def refusing(*, name: str, what: str, why: str, message: str, remedy: str, example: Example) -> Rule:
    """A rule that reports what the analysis refuses under its name; ``{}`` stands for the details."""

    def apply(porting: Porting) -> None:
        for each in porting.plan.refusals:
            if each.rule == name:
                text = message.format(each.detail) if each.detail else message.replace(" ({})", "").replace("{}", "it")
                porting.find(each.source, each.node, name, Severity.REFUSED, text, remedy)

    return Rule(name=name, targets=PROGRAMS, what=what, why=why, example=example, apply=apply)
