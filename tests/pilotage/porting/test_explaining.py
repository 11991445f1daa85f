from __future__ import annotations

from pilotage.porting.explaining import as_markdown, explained
from pilotage.porting.rules.registry import rule_named


def test_an_explanation_has_what_why_and_the_difference():
    text = explained(rule_named("one-call"))
    assert text.startswith("one-call (pilotage, popdist, poptorch)\n\nWhat: ")
    assert "Why: " in text
    assert "    -    loss.backward()" in text
    assert "    +    output, loss = training_model(x, y)" in text


def test_a_refusal_shows_its_example_and_what_it_reports():
    text = as_markdown(rule_named("two-optimizers"))
    assert text.startswith("## two-optimizers\n")
    assert "```python\n" in text
    assert "Reports: *A second optimizer" in text
