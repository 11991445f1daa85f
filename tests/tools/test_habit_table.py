from __future__ import annotations

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    return importlib.import_module("tools.habit_table")


def script(habit, compiled=True, **times):
    milliseconds = {"eager": [4.0, 6.0, 5.0], "torch.compile": [5.0, 5.0, 5.0], "pilotage": [2.0, 3.0, 2.5]}
    return {"habit": habit, "about": "A loop.", "compiled": compiled, "milliseconds": milliseconds | times}


def results(*scripts, other_cores=0.0):
    machine = {"device": "A processor", "cores": 2, "torch": "2.13.0", "python": "3.11.7"}
    details = {"scripts": list(scripts), "other_cores": other_cores, "threads": 1}
    return {"machine": machine, "tables": [{"details": {}}, {"details": details}]}


def page(tool, *scripts):
    return tool.page(results(*scripts)).replace(tool.NARROW, " ")


def test_a_factor_compares_times_of_the_same_round_and_has_a_range(tool):
    text = page(tool, script("plain", **{"torch.compile": [8.0, 6.0, 5.0]}))
    assert "| A loop (`plain`) | 5.00 ms | 1.00 × (0.50 to 1.00) | **2.00 × (2.00 to 2.00)** |" in text


def test_the_page_counts_where_the_program_is_not_the_fastest(tool):
    text = tool.page(results(script("a"), script("b", pilotage=[8.0, 12.0, 10.0])))
    assert "Of 2 scripts, Pilotage is faster than eager PyTorch in 1 and the fastest of the three in 1" in text
    assert "from 0.50 to 2.00" in text


def test_what_torch_compile_leaves_alone_has_no_factor(tool):
    assert "| compiled nothing |" in page(tool, script("a", compiled=False))


def test_a_refusal_of_torch_compile_is_quoted(tool):
    refused = script("a", compiled=False) | {"refused": "no double backward"}
    del refused["milliseconds"]["torch.compile"]
    text = page(tool, refused)
    assert "| refuses | **2.00 ×" in text
    assert "What `torch.compile` says where it refuses: `a`: no double backward.\n" in text


def test_the_page_says_what_else_ran(tool):
    assert "Nothing else ran at the same time." in tool.page(results(script("a")))
    assert "Other programs used 1.4 of the 2 cores" in tool.page(results(script("a"), other_cores=1.43))


def test_the_page_in_the_repository_has_every_script_that_can_be_measured():
    shown = (ROOT / "docs/lab-notes/habits.md").read_text()
    if "Not measured yet." in shown:
        pytest.skip("the scripts have not been timed yet")
    left_out = {"early_stopping", "resume", "two_networks"}
    wanted = {each.name for each in (ROOT / "tests/door_habits/scripts").iterdir() if each.is_dir()} - left_out
    assert len(wanted) >= 30
    assert all(f"(`{name}`)" in shown for name in wanted)
