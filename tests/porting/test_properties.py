"""Whatever the script, a port parses, a second one changes nothing, and refusals leave the script as it is."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.errors import PortingError
from pilotage.porting.driver import port_texts
from pilotage.porting.finding import Severity
from pilotage.porting.target import Target

CORPUS = Path(__file__).parent / "corpus"
SCRIPTS = sorted(CORPUS.glob("*.py"))
PATH = Path("script.py")
WRITTEN = ["    ", "  ", "\t"]


@cache
def blocks(path):
    """Where the statements of a script are that can be left out, as lines."""
    tree = ast.parse(path.read_text())
    return [
        (each.lineno - 1, each.end_lineno)
        for node in ast.walk(tree)
        for name in ("body", "orelse")
        if isinstance(block := getattr(node, name, None), list) and len(block) > 1
        for each in block
        if isinstance(each, ast.stmt) and not getattr(each, "decorator_list", None)
    ]


@st.composite
def scripts(draw):
    """A script of the corpus without some of its statements, perhaps with other indentation, comments and line ends."""
    path = draw(st.sampled_from(SCRIPTS))
    lines = path.read_text().splitlines(keepends=True)
    for start, end in draw(st.lists(st.sampled_from(blocks(path)), max_size=4)):
        lines[start:end] = [""] * (end - start)
    if draw(st.booleans()):
        lines = [line.rstrip("\n") + "  # é\n" if line.rstrip().endswith(")") else line for line in lines]
    unit = draw(st.sampled_from(WRITTEN))
    lines = [reindented(line, unit) for line in lines]
    text = "".join(lines)
    for disguise in draw(st.lists(st.sampled_from(DISGUISES), max_size=2, unique=True)):
        disguised = disguise(text)
        text = disguised if is_python(disguised) else text
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


def sharing_lines(text):
    """Neighbouring calls and assignments in one line, with a semicolon between them."""
    lines = text.split("\n")
    simple = re.compile(r"(\s*)[\w.]+(\(.*\)| = .*[^\\:({\[,])")
    for number in range(len(lines) - 1):
        first, second = simple.fullmatch(lines[number]), simple.fullmatch(lines[number + 1])
        if first and second and first[1] == second[1] and "#" not in lines[number] and number % 3:
            joined = [*lines[:number], "", f"{lines[number]}; {lines[number + 1].lstrip()}", *lines[number + 2 :]]
            lines = joined if is_python("\n".join(joined)) else lines
    return "\n".join(lines)


def behind_colons(text):
    """Blocks of one line behind their colon."""
    return re.sub(r"(?m)^(\s*)((?:if|for|while|with|else)\b.*:)\n\1\s+(\S.*)\n(?=\1\S|\s*\n)", r"\1\2 \3\n", text)


def spread_out(text):
    """Arguments in lines of their own, with comments between them."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        place = line.rfind(", ")
        if line.rstrip().endswith(")") and place > 0 and "#" not in line:
            spread = [*lines]
            spread[number] = f"{line[:place]},  # (why, then)\n        {line[place + 2 :]}"
            lines = spread if is_python("\n".join(spread)) else lines
    return "\n".join(lines)


def continued(text):
    """Assignments that a backslash continues."""
    return re.sub(r"(?m)^(\s*[\w.]+) = (\w.*[^\\:,({\[])$", r"\1 = \\\n        \2", text)


def with_form_feeds(text):
    """Pages, as old editors make them."""
    return re.sub(r"(?m)^(def |class )", "\f\n\\1", text)


def in_a_function(text):
    """Everything in a function that is called at an odd place."""
    body = "".join(f"    {line}\n" if line.strip() else "\n" for line in text.split("\n"))
    return f"def everything():\n{body}\nif True:\n    if __name__ == '__main__': everything()\n"


def without_an_end(text):
    """No line feed at the end."""
    return text.rstrip("\n")


DISGUISES = [sharing_lines, behind_colons, spread_out, continued, with_form_feeds, in_a_function, without_an_end]


def reindented(line, unit):
    spaces = len(line) - len(line.lstrip(" "))
    return unit * (spaces // 4) + " " * (spaces % 4) + line.lstrip(" ") if spaces % 4 == 0 else line


def is_python(text):
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def check(text, target):
    if not is_python(text):
        with pytest.raises(PortingError, match="this is not valid Python"):
            port_texts({PATH: text}, target)
        return
    report = port_texts({PATH: text}, target)
    (file,) = report.files
    ast.parse(file.after)
    if any(each.severity is Severity.REFUSED for each in report.findings):
        assert not file.is_changed
    for finding in report.findings:
        assert 1 <= finding.line <= len(text.splitlines()) + 1
        assert finding.column >= 1
    (again,) = port_texts({PATH: file.after}, target).files
    assert again.diff() == ""


@pytest.mark.slow
@settings(max_examples=30, derandomize=True)
@given(text=scripts(), target=st.sampled_from(list(Target)))
def test_a_port_parses_and_porting_it_again_changes_nothing(text, target):
    check(text, target)


@pytest.mark.long
@settings(max_examples=400, derandomize=True)
@given(text=scripts(), target=st.sampled_from(list(Target)))
def test_many_ports_parse_and_porting_them_again_changes_nothing(text, target):
    check(text, target)
