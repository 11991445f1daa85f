from __future__ import annotations

import inspect
import re

import pytest

from pilotage import errors

KINDS = {name: kind for name, kind in vars(errors).items() if inspect.isclass(kind)}


def drawn_tree() -> dict[str, str]:
    """Each error in the tree of the module's docstring, with its parent."""
    parents: dict[str, str] = {}
    open_branches: list[tuple[int, str]] = []
    for line in errors.__doc__.splitlines():
        match = re.match(r"^([│├└─\s]*)([A-Z]\w+Error)\b", line)
        if match is None:
            continue
        depth, name = len(match[1]), match[2]
        open_branches = [branch for branch in open_branches if branch[0] < depth]
        if open_branches:
            parents[name] = open_branches[-1][1]
        open_branches.append((depth, name))
    return parents


def test_the_tree_of_errors_matches_the_classes():
    assert drawn_tree() == {name: kind.__bases__[0].__name__ for name, kind in KINDS.items() if name != "PilotageError"}


def test_every_error_is_public():
    assert sorted(errors.__all__) == sorted(KINDS)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_every_error_has_a_docstring(name):
    assert issubclass(KINDS[name], errors.PilotageError)
    assert KINDS[name].__doc__.endswith(".")


@pytest.mark.parametrize(
    ("name", "builtin"),
    [
        ("OptionError", ValueError),
        ("InputError", ValueError),
        ("BatchDimensionError", ValueError),
        ("CaptureError", RuntimeError),
        ("LossError", RuntimeError),
        ("NonFiniteLossError", ArithmeticError),
        ("LostModelError", RuntimeError),
    ],
)
def test_errors_can_be_caught_by_pythons_own_names(name, builtin):
    assert issubclass(KINDS[name], builtin)
