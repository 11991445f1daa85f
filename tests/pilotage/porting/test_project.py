from __future__ import annotations

import ast
from pathlib import Path

from pilotage.porting.project import Project
from pilotage.porting.sources.source import Source


def project(**texts: str) -> Project:
    return Project([Source(Path("p", *name.split("__")).with_suffix(".py"), text) for name, text in texts.items()])


def calls(made: Project, index: int) -> list[ast.Call]:
    return [node for node in ast.walk(made.sources[index].tree) if isinstance(node, ast.Call)]


def test_functions_are_found_through_all_kinds_of_imports():
    made = project(
        tools="def f():\n    pass\n",
        sub__inner="def g():\n    pass\n",
        main="import tools\nfrom tools import f as h\nfrom .sub import inner\ntools.f()\nh()\ninner.g()\n",
    )
    names = [made.callee(made.sources[2], call)[1].node.name for call in calls(made, 2)]
    assert names == ["f", "f", "g"]


def test_methods_are_found_in_base_classes_and_through_instances():
    made = project(
        main="class A:\n    def f(self):\n        self.g()\n\n    def g(self): ...\n\n"
        "class B(A): ...\n\nb = B()\nb.f()\n"
    )
    (source,) = made.sources
    first = source.tree.body[0].body
    assert [ast.unparse(each.call) for each in made.callers(first[0])] == ["b.f()"]
    assert [ast.unparse(each.call) for each in made.callers(first[1])] == ["self.g()"]


def test_arguments_are_matched_to_parameters():
    made = project(main="def f(a, b, c=3): ...\n\nf(1, b=2)\nf(*x)\n")
    function = made.sources[0].tree.body[0]
    plain, starred = made.callers(function)
    assert ast.unparse(plain.argument(function, "a")) == "1"
    assert ast.unparse(plain.argument(function, "b")) == "2"
    assert plain.argument(function, "c") is None
    assert ast.unparse(plain.is_left_out(function, "c")) == "3"
    assert starred.argument(function, "a") is None


def test_imported_files_of_the_project_are_known():
    made = project(model="x = 1\n", main="from model import x\nimport os\n")
    assert list(made.imports(made.sources[1])) == [made.sources[0]]
