"""Which of our changes a compilation makes."""

from __future__ import annotations

import pytest

from pilotage.compiler.changes import ChangeFailed, Changes


def test_a_change_without_effect_is_not_noted():
    changes, values = Changes(), [1]
    changes.make("nothing", lambda: None, lambda: list(values))
    changes.make("something", lambda: values.append(2), lambda: list(values))
    assert changes.made == ["something"]


def test_an_excluded_change_is_neither_made_nor_noted():
    changes, values = Changes(frozenset({"something", "a setting"})), [1]
    changes.make("something", lambda: values.append(2), lambda: list(values))
    assert (values, changes.made, changes.allow("a setting")) == ([1], [], False)


def test_the_error_of_a_change_names_it_and_has_the_cause():
    with pytest.raises(ChangeFailed, match="division") as caught:
        Changes().make("division", lambda: 1 / 0, lambda: None)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
