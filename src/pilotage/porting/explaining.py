"""A rule in words, for the terminal and for the page of rules."""

from __future__ import annotations

import difflib
import textwrap

from pilotage.porting.rule import GuideEdit, Rule

__all__ = ["as_markdown", "example_diff", "explained"]


def explained(rule: Rule) -> str:
    """A rule as text for a terminal."""
    targets = ", ".join(sorted(each.value for each in rule.targets))
    parts = [
        f"{rule.name} ({targets})",
        _wrapped(f"What: {rule.what}"),
        _wrapped(f"Why: {rule.why}"),
        "Example:\n" + textwrap.indent(example_diff(rule) or rule.example.before, "    "),
    ]
    if rule.example.finds:
        parts.append(_wrapped(f"Reports: {rule.example.finds}"))
    parts += [_wrapped(_guide_edit(each)) for each in rule.not_followed]
    return "\n\n".join(part.rstrip("\n") for part in parts)


def as_markdown(rule: Rule) -> str:
    """A rule as a section of the page of rules."""
    targets = ", ".join(sorted(each.value for each in rule.targets))
    diff = example_diff(rule)
    code = f"```diff\n{diff}```" if diff else f"```python\n{rule.example.before}```"
    reports = f"\n\nReports: *{rule.example.finds}*" if rule.example.finds else ""
    guides = "".join(f"\n\n{_guide_edit(each)}" for each in rule.not_followed)
    words = f"**What.** {rule.what}\n\n**Why.** {rule.why}"
    return f"## {rule.name}\n\nTargets: {targets}\n\n{words}\n\n{code}{reports}{guides}\n"


def example_diff(rule: Rule) -> str:
    """The example as a difference without headers; empty if the rule edits nothing."""
    if not rule.example.after:
        return ""
    lines = difflib.unified_diff(
        rule.example.before.splitlines(keepends=True), rule.example.after.splitlines(keepends=True), n=2
    )
    return "".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


def _guide_edit(each: GuideEdit) -> str:
    return f"The guide {each.guide} {each.edit}. The port: {each.instead}."


def _wrapped(text: str) -> str:
    return textwrap.fill(text, width=100)
