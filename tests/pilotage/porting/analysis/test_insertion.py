from __future__ import annotations

import ast

from pilotage.porting.analysis.insertion import in_class, in_function, in_module
from pilotage.porting.sources.edits import Edit, apply_edits


def marked(source, place) -> str:
    text = apply_edits(source.text, [Edit(start=place.offset, end=place.offset, text=f"{place.indent}HERE\n", rule="")])
    return text[text.index("HERE") - 40 :]


def test_a_place_in_a_function_is_before_the_outermost_loop_that_knows_the_variables(project):
    made = project(script="a = 1\nfor i in x:\n    b = 2\n    for j in y:\n        use(a, b)\n")
    (source,) = made.sources
    scope = made.scopes[source].module
    anchor = source.tree.body[-1].body[1].body[0]
    place, statement = in_function(scope, anchor, ["a"])
    assert isinstance(statement, ast.For)
    assert "HERE\nfor i in x:" in marked(source, place)
    place, _ = in_function(scope, anchor, ["a", "b"])
    assert "    HERE\n    for j in y:" in marked(source, place)


def test_a_variable_of_the_innermost_loop_has_no_place(project):
    made = project(script="for j in y:\n    b = 2\n    use(b)\n")
    (source,) = made.sources
    scope = made.scopes[source].module
    assert in_function(scope, source.tree.body[-1].body[1], ["b"]) is None


def test_a_place_in_a_module_is_after_both_branches(project):
    made = project(script="if c:\n    a = 1\nelse:\n    a = 2\nother = 3\n")
    (source,) = made.sources
    place = in_module(made.scopes[source].module, ["a"])
    assert "    a = 2\nHERE\nother" in marked(source, place)


def test_a_place_in_a_class_is_inside_of_a_condition_that_makes_the_last_attribute(project):
    text = """
    class T:
        def start(self):
            self.a = 1
            if self.trains:
                self.make()
            self.c = 3

        def make(self):
            self.b = 2
    """
    made = project(script=text)
    (source,) = made.sources
    scope = made.scopes[source].inside(source.tree.body[-1])
    place = in_class(made, source, scope, ["self.a", "self.b"])
    assert "self.make()\n            HERE\n" in marked(source, place)
