from __future__ import annotations

from pathlib import Path

from pilotage.porting.analysis.refusal import Refusal
from pilotage.porting.finding import Severity
from pilotage.porting.porting import Porting
from pilotage.porting.project import Project
from pilotage.porting.rule import Example
from pilotage.porting.rules.refusals.refusing import refusing
from pilotage.porting.sources.source import Source
from pilotage.porting.target import Target

RULE = refusing(
    name="some",
    what="What.",
    why="Why.",
    message="The loss needs {}.",
    remedy="Leave it out.",
    example=Example(before=""),
)


def test_a_refusal_of_the_analysis_is_reported_under_its_own_rule_only():
    source = Source(Path("a.py"), "x = 1\ny = 2\n")
    porting = Porting(Project([source]), Target.POPTORCH)
    for rule, detail in (("some", "x.item()"), ("other", "y")):
        porting.plan.refusals.append(Refusal(source=source, node=source.tree.body[1], rule=rule, detail=detail))
    RULE.apply(porting)
    (finding,) = porting.findings
    assert (finding.line, finding.severity) == (2, Severity.REFUSED)
    assert (finding.message, finding.remedy) == ("The loss needs x.item().", "Leave it out.")
