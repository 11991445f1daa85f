"""Write docs/porting-rules.md, the page of all rules of `pilotage port`: python -m tools.porting_rules."""

from __future__ import annotations

from pathlib import Path

from pilotage.porting.explaining import as_markdown
from pilotage.porting.rules.registry import RULES

__all__ = ["PAGE", "page"]

PAGE = Path(__file__).resolve().parents[1] / "docs/porting-rules.md"
INTRODUCTION = """\
# The rules of `pilotage port`

Each rule is one file in `src/pilotage/porting/rules`, and a test applies it to its example. The examples show only
what the rule itself changes. `pilotage port --explain RULE` prints the same in a terminal. This page is written by
`python -m tools.porting_rules`.

| rule | targets |
|---|---|
"""


def page() -> str:
    """The whole page."""
    rows = "".join(
        f"| [{rule.name}](#{rule.name}) | {', '.join(sorted(each.value for each in rule.targets))} |\n"
        for rule in RULES
    )
    return INTRODUCTION + rows + "\n" + "\n".join(as_markdown(rule) for rule in RULES)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
