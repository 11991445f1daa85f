"""The script that prints the walk of a call, on functions of its own."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools/call_walk.py"

OURS = '''
def outer(x, y):
    """Add twice."""
    return inner(x, y)


def inner(x, y):
    return leaf(x) + leaf(y)


def leaf(x):
    return int(x)
'''


@pytest.fixture
def call_walk(monkeypatch, tmp_path):
    specification = importlib.util.spec_from_file_location("call_walk", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, "call_walk", module)
    specification.loader.exec_module(module)
    monkeypatch.setattr(module, "SOURCES", (tmp_path,))
    return module


def walk_of(call_walk, tmp_path):
    file = tmp_path / "ours.py"
    file.write_text(OURS)
    names = {}
    exec(compile(OURS, str(file), "exec"), names)
    walk = call_walk.Walk("A call")
    walk.follow(lambda: names["outer"](1, 2))
    return walk


def test_functions_are_printed_in_order_counted_and_marked(call_walk, tmp_path):
    text = walk_of(call_walk, tmp_path).text()
    assert "A call: 3 functions in 1 files, 1 of which only forward their arguments." in text
    assert "ours.py: outer ->, inner, leaf ×2" in text


def test_a_short_text_has_only_numbers(call_walk, tmp_path):
    assert "ours.py (3)" in walk_of(call_walk, tmp_path).text(names=False)


def test_the_page_changes_only_between_its_marks(call_walk, monkeypatch, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{call_walk.BEGIN}\nold\n{call_walk.END}\nafter\n")
    monkeypatch.setattr(call_walk, "PAGE", page)
    call_walk.write("new")
    assert page.read_text() == f"before\n{call_walk.BEGIN}\nnew\n{call_walk.END}\nafter\n"


def test_a_page_without_marks_is_not_changed(call_walk, monkeypatch, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("nothing here\n")
    monkeypatch.setattr(call_walk, "PAGE", page)
    with pytest.raises(SystemExit, match="has no lines"):
        call_walk.write("new")
    assert page.read_text() == "nothing here\n"


MOST_OF_A_LATER_CALL = 26


@pytest.mark.slow
def test_no_function_of_a_call_only_forwards_and_later_calls_are_short_and_on_the_page():
    printed = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, timeout=240, check=True)
    headings = re.findall(
        r"^(First|A later) call of `(.+)`: (\d+) .*, (\d+) of which only", printed.stdout, re.MULTILINE
    )
    assert [name for _, name, *_ in headings] == ["poptorch.trainingModel"] * 2 + ["pilotage.training"] * 2
    assert {forwarders for *_, forwarders in headings} == {"0"}, printed.stdout
    later = {name: int(count) for kind, name, count, _ in headings if kind == "A later"}
    assert max(later.values()) <= MOST_OF_A_LATER_CALL, printed.stdout
    page = (SCRIPT.parents[1] / "ARCHITECTURE.md").read_text()
    walks = re.findall(r"^A later call of .*?^```\n.*?^```$", printed.stdout, re.MULTILINE | re.DOTALL)
    assert len(walks) == 2
    assert [walk for walk in walks if walk not in page] == []  # tools/call_walk.py --write


def test_the_architecture_page_has_the_marks(call_walk):
    page = call_walk.PAGE.read_text()
    assert page.index(call_walk.BEGIN) < page.index(call_walk.END)
