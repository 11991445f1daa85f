"""Every rule does to its example what its example says."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

from pilotage.errors import PortingError
from pilotage.porting import rules
from pilotage.porting.driver import port_texts
from pilotage.porting.rule import Rule
from pilotage.porting.rules.registry import RULES, rule_named, rules_for
from pilotage.porting.target import Target

FOLDER = Path(rules.__file__).parent


def named(rule):
    return rule.name


@pytest.mark.parametrize("rule", RULES, ids=named)
def test_a_rule_does_what_its_example_shows(rule):
    target = min(rule.targets, key=lambda each: list(Target).index(each))
    report = port_texts({Path("script.py"): rule.example.before}, target, only=rule)
    (file,) = report.files
    assert file.after == (rule.example.after or rule.example.before)
    found = [str(each) for each in report.findings]
    assert bool(found) == bool(rule.example.finds)
    assert any(rule.example.finds in each for each in found) or not rule.example.finds


@pytest.mark.parametrize("rule", RULES, ids=named)
def test_a_rule_explains_itself_in_sentences(rule):
    assert rule.name == rule.name.lower().replace("_", "-").replace(" ", "-")
    for text in (rule.what, rule.why):
        assert text.endswith(".")
        assert len(text) > 20
    ast.parse(rule.example.before)
    assert rule.targets


def test_names_are_unique_and_every_rule_has_a_file_of_its_own():
    assert len({rule.name for rule in RULES}) == len(RULES)
    files = [path for path in FOLDER.rglob("*.py") if "\nRULE = " in path.read_text()]
    assert len(files) == len(RULES)
    for path in files:
        module = import_module("pilotage.porting.rules." + ".".join(path.relative_to(FOLDER).with_suffix("").parts))
        assert isinstance(module.RULE, Rule)
        assert module.RULE in RULES


def test_every_target_has_rules_and_unknown_names_are_refused():
    for target in Target:
        assert rules_for(target)
    assert rule_named("one-call").name == "one-call"
    with pytest.raises(PortingError, match="No rule is named 'nothing'"):
        rule_named("nothing")
