"""The figures of lazy mode, for given graphs."""

import json

import pytest

from habana_frameworks._emulation.library import Graph
from habana_frameworks._emulation.summary import Ending, Summary, report, texts


def graph(operations=4, structure=1, shapes=1):
    return Graph(operations=operations, structure=structure, shapes=shapes)


def test_known_operations_on_new_shapes_compile_again_and_the_rest_comes_from_the_cache():
    summary = Summary()
    for each in (graph(), graph(), graph(shapes=2), graph(shapes=2), graph(structure=2)):
        summary.count(each, Ending.MARK, "train.py:1")
    assert summary.totals == {
        "graphs": 5,
        "operations": 20,
        "cache_hits": 2,
        "compilations": 3,
        "recompilations_by_shape": 1,
        "idle_marks": 0,
        "cut_by_reading": 0,
    }


def test_an_empty_graph_is_an_idle_mark_except_at_the_end_of_the_program():
    summary = Summary()
    summary.count(graph(operations=0), Ending.MARK, "train.py:1")
    summary.count(graph(operations=0), Ending.EXIT, "after the last mark_step")
    assert summary.totals["idle_marks"] == 1
    assert list(summary.lines) == ["train.py:1"]


@pytest.mark.parametrize(("graphs", "operations", "is_excessive"), [(10, 2, True), (10, 3, False), (9, 2, False)])
def test_many_marks_with_little_work_are_excessive(graphs, operations, is_excessive):
    summary = Summary()
    for _ in range(graphs):
        summary.count(graph(operations), Ending.MARK, "train.py:7")
    assert summary.as_data()["excessive_marks"] == ["train.py:7"] * is_excessive
    assert any(text.startswith("Excessive mark_step at train.py:7") for text in texts(summary)) == is_excessive


def test_reading_a_value_is_counted_but_never_excessive():
    summary = Summary()
    for _ in range(20):
        summary.count(graph(1), Ending.READING, "train.py:9")
    assert summary.totals["cut_by_reading"] == 20
    assert summary.as_data()["excessive_marks"] == []


def test_updates_are_counted_by_the_marks_before_them():
    summary = Summary()
    for marks in (0, 0, 1):
        summary.count_missing("train.py:5", marks)
    assert (summary.unmarked_updates, summary.once_marked_updates) == ({"train.py:5": 2}, {"train.py:5": 1})
    assert [text.partition(":5: ")[2].split()[0] for text in texts(summary) if "Missing" in text] == ["2", "1"]


def test_ten_lines_are_shown_and_the_file_has_all_of_them(tmp_path, monkeypatch):
    summary = Summary()
    for number in range(12):
        summary.count(graph(number + 1), Ending.MARK, f"train.py:{number}")
    shown = texts(summary)
    assert [line.split()[0] for line in shown[1:11]] == [f"train.py:{number}" for number in range(11, 1, -1)]
    assert "2 more lines" in shown[11]
    monkeypatch.setenv("PILOTAGE_HPU_SUMMARY", str(tmp_path / "summary.json"))
    report(summary)
    assert len(json.loads((tmp_path / "summary.json").read_text())["lines"]) == 12
