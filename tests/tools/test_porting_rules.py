from __future__ import annotations

from pilotage.porting.rules.registry import RULES
from tools.porting_rules import PAGE, page


def test_the_page_of_rules_is_current():
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tools.porting_rules"


def test_the_page_has_a_section_for_every_rule():
    for rule in RULES:
        assert f"\n## {rule.name}\n" in page()
