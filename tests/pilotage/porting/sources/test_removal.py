from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.porting.sources.edits import apply_edits
from pilotage.porting.sources.removal import Removal, removal_edits
from pilotage.porting.sources.source import Source


def without(text: str, *numbers: int, inside: bool = False) -> str:
    source = Source(Path("a.py"), text)
    block = source.tree.body[0].body if inside else source.tree.body
    removed = {block[number]: Removal(rule="some", with_comments=True) for number in numbers}
    return apply_edits(text, removal_edits(source, removed))


def test_a_statement_goes_with_its_lines_and_the_comment_above_it():
    assert without("a\n# about b\nb(1,\n  2)  # too\nc\n", 1) == "a\nc\n"


@pytest.mark.parametrize(
    ("numbers", "left"), [((0,), "b; c\n"), ((1,), "a; c\n"), ((2,), "a; b\n"), ((1, 2), "a\n"), ((0, 1, 2), "")]
)
def test_statements_that_share_a_line_go_one_by_one(numbers, left):
    assert without("a; b; c\n", *numbers) == left


def test_the_only_statement_behind_a_colon_becomes_pass():
    assert without("if x: a\n", 0, inside=True) == "if x: pass\n"


def test_blank_lines_do_not_begin_a_block():
    assert without("if x:\n    a\n\n    b\n", 0, inside=True) == "if x:\n    b\n"
