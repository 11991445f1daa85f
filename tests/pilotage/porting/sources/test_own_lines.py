from __future__ import annotations

import ast
from pathlib import Path

import pytest

from pilotage.porting.sources.edits import Edit
from pilotage.porting.sources.own_lines import with_own_lines
from pilotage.porting.sources.source import Source


def divided(text: str, touched: str) -> str:
    source = Source(Path("a.py"), text)
    start = text.index(touched)
    return with_own_lines(source, [Edit(start=start, end=start + len(touched), text="z", rule="r")]).text


@pytest.mark.parametrize(
    ("text", "touched", "expected"),
    [
        ("a(); b(); c()\n", "b()", "a()\nb()\nc()\n"),
        ("if x: a(); b()\n", "b()", "if x:\n    a()\n    b()\n"),
        ("def f():\n\tif x: a()\n\telse: b()\n", "b()", "def f():\n\tif x: a()\n\telse:\n\t\tb()\n"),
        ("a();  # why\nb()\n", "a()", "a()# why\nb()\n"),
        ("a(1,\n  2); b()\n", "b()", "a(1,\n  2)\nb()\n"),
        ("try: a()\nexcept E: b()\n", "b()", "try: a()\nexcept E:\n    b()\n"),
        ("a(); b()\r\nc()\r\n", "a()", "a()\r\nb()\r\nc()\r\n"),
        ("x = ';'; b()\n", "b()", "x = ';'\nb()\n"),
        ("class A: x = 1\n", "x", "class A:\n    x = 1\n"),
        ("if x:\n  \fif y: a()\n", "a()", "if x:\n  \fif y:\n  a()\n"),
    ],
)
def test_statements_that_share_a_line_get_lines_of_their_own(text, touched, expected):
    try:
        ast.parse(text)
    except SyntaxError:
        pytest.skip("this Python does not accept it")
    assert divided(text, touched) == expected


def test_code_that_is_added_beside_a_line_does_not_touch_it():
    text = "def f(): return 1\nf()\n"
    source = Source(Path("a.py"), text)
    assert with_own_lines(source, [Edit(start=18, end=18, text="\n\nclass A:\n    pass\n", rule="r")]) is source


def test_lines_that_no_edit_touches_stay_as_they_are():
    text = "a(); b()\nc()\n"
    assert divided(text, "c()") == text
    source = Source(Path("a.py"), text)
    assert with_own_lines(source, []) is source


def test_findings_still_name_the_lines_of_the_file():
    source = Source(Path("a.py"), "a(); b()\nc()\n")
    new = with_own_lines(source, [Edit(start=0, end=3, text="z", rule="r")])
    assert [new.reported_place(each)[0] for each in new.tree.body] == [1, 1, 2]
