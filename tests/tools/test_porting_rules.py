from __future__ import annotations

from pilotage.porting.rules.registry import RULES
from tools.porting_rules import PAGE, page


def test_the_page_of_rules_is_current():
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tools.porting_rules"


def test_the_page_has_a_section_for_every_rule():
    for rule in RULES:
        assert f"\n## {rule.name}\n" in page()


def test_the_guide_lists_every_edit_of_published_guides_that_is_not_followed():
    guide = PAGE.with_name("porting.md").read_text(encoding="utf-8")
    rows = [each for rule in RULES for each in rule.not_followed]
    assert len(rows) >= 7
    for each in rows:
        assert f"| {each.guide} | {each.edit} | {each.instead} |" in guide
