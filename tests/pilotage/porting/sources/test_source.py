from __future__ import annotations

import ast
from pathlib import Path

from pilotage.porting.sources.source import Source

TEXT = 'name = "é"; x = 1\nif x:\n    y = f(x,\n          2)\n'


def test_places_count_characters_and_not_bytes():
    source = Source(Path("a.py"), TEXT)
    second = source.tree.body[1]
    assert source.place(second) == (1, 13)
    assert source.segment(second) == "x = 1"


def test_a_statement_and_its_block_are_found_from_a_node():
    source = Source(Path("a.py"), TEXT)
    call = next(node for node in ast.walk(source.tree) if isinstance(node, ast.Call))
    statement = source.statement(call)
    assert source.segment(statement) == "y = f(x,\n          2)"
    assert source.block(statement) == [statement]
    assert isinstance(source.ancestors(call)[-1], ast.Module)


def test_a_form_feed_does_not_end_a_line():
    source = Source(Path("a.py"), "a = 1\n\x0c\nb = 2\n")
    assert source.place(source.tree.body[1]) == (3, 1)
    assert source.segment(source.tree.body[1]) == "b = 2"
