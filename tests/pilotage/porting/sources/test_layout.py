from __future__ import annotations

from pathlib import Path

from pilotage.porting.sources.layout import indented, lines_of, unit_of_indentation
from pilotage.porting.sources.source import Source


def test_the_unit_of_indentation_is_that_of_the_script():
    assert unit_of_indentation(Source(Path("a.py"), "if x:\n  a\n")) == "  "
    assert unit_of_indentation(Source(Path("a.py"), "if x:\n\ta\n")) == "\t"
    assert unit_of_indentation(Source(Path("a.py"), "a\n")) == "    "


def test_text_inside_of_strings_is_not_indented():
    text = 'a = """one\ntwo"""\nb\n'
    assert indented(text, "    ") == '    a = """one\ntwo"""\n    b\n'


def test_lines_of_a_decorated_function_begin_at_its_decorator():
    text = "a\n@one\ndef f():\n    pass\nb\n"
    source = Source(Path("a.py"), text)
    start, end = lines_of(source, source.tree.body[1])
    assert text[start:end] == "@one\ndef f():\n    pass\n"
