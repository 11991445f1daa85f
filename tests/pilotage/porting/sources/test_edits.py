from __future__ import annotations

import pytest

from pilotage.errors import PortingError
from pilotage.porting.sources.edits import Edit, apply_edits


def edit(start: int, end: int, text: str) -> Edit:
    return Edit(start=start, end=end, text=text, rule="some")


def test_edits_are_applied_at_their_places_in_the_original():
    assert apply_edits("abcdef", [edit(4, 5, "E"), edit(0, 1, "A"), edit(2, 2, "-")]) == "Ab-cdEf"


def test_an_edit_inside_of_a_larger_one_is_part_of_it():
    assert apply_edits("abcdef", [edit(1, 5, "X"), edit(2, 3, "y"), edit(3, 3, "z")]) == "aXf"


def test_insertions_at_both_ends_of_a_replacement_stay():
    assert apply_edits("abc", [edit(1, 2, ""), edit(1, 1, "<"), edit(2, 2, ">")]) == "a<>c"


def test_insertions_at_one_place_keep_their_order():
    assert apply_edits("ab", [edit(1, 1, "1"), edit(1, 1, "2")]) == "a12b"


def test_the_same_edit_twice_is_made_once():
    assert apply_edits("abc", [edit(1, 2, "x"), edit(1, 2, "x")]) == "axc"


def test_edits_that_overlap_are_an_error():
    with pytest.raises(PortingError, match="edit the same text"):
        apply_edits("abcdef", [edit(0, 3, "x"), edit(2, 5, "y")])
