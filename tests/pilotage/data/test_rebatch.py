import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.data.rebatch import rebatched
from pilotage.errors import InputError


@settings(deadline=None)
@given(sizes=st.lists(st.integers(0, 12), max_size=12), size=st.integers(1, 10), drop_last=st.booleans())
def test_rebatching_keeps_every_row_in_order(sizes, size, drop_last):
    rows = torch.arange(sum(sizes))
    pieces = [[piece, 10.0 * piece.unsqueeze(1)] for piece in rows.split(sizes)] if sizes else []
    batches = list(rebatched(pieces, size, drop_last=drop_last))
    kept = len(rows) - len(rows) % size if drop_last else len(rows)
    assert [int(row) for batch in batches for row in batch[0]] == list(range(kept))
    assert all(torch.equal(batch[1].squeeze(1), 10.0 * batch[0]) for batch in batches)
    assert all(len(batch[0]) == size for batch in batches[:-1])


def test_a_piece_of_the_right_size_is_passed_on_without_a_copy():
    piece = [torch.rand(4, 2)]
    assert next(rebatched([piece], 4, drop_last=True)) is piece


@pytest.mark.parametrize("piece", [[torch.tensor(1.0)], [torch.rand(3), torch.rand(4)]], ids=["no rows", "unequal"])
def test_pieces_without_a_common_number_of_rows_are_refused(piece):
    with pytest.raises(InputError, match="the same first dimension"):
        list(rebatched([piece], 2, drop_last=True))
