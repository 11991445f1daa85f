"""Indexing with tensors: equals eager in reads, writes and gradients, and refused if a copy would be noticed."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import pilotage
from pilotage.errors import CaptureError

SIZES = (4, 3, 5)


class Function(nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor):
        return self.function(*inputs)


def item(size):
    """One item of an index for a dimension of this size; tensor indices are given as strings."""
    return st.one_of(
        st.integers(-size, size - 1).map(lambda number: ("position", number)),
        st.integers(-size, size - 1),
        st.slices(size).filter(lambda cut: (cut.step or 1) > 0),
        st.just(slice(None)),
    )


@st.composite
def indices(draw, *, advanced: bool):
    count = draw(st.integers(1, len(SIZES)))
    items = [draw(item(size)) for size in SIZES[:count]]
    items[draw(st.integers(0, count - 1))] = ("position", draw(st.integers(-3, 2)))
    if advanced and draw(st.booleans()):
        place = draw(st.integers(0, count - 1))
        if not isinstance(items[place], tuple):
            items[place] = [0, 2, 1]
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), None)
    if count < len(SIZES) and draw(st.booleans()):
        items.append(...)
    return items


def with_tensors(items, positions):
    waiting = iter(positions)
    return tuple(next(waiting) if isinstance(item, tuple) else item for item in items)


def positions_of(items):
    return [torch.tensor(item[1]) for item in items if isinstance(item, tuple)]


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(indices(advanced=True))
def test_reading_equals_eager(items):
    x, positions = torch.arange(60.0).reshape(SIZES), positions_of(items)
    program = pilotage.inference(Function(lambda x, *positions: x[with_tensors(items, positions)] * 1))
    found = program(x, *positions)
    assert found.shape == x[with_tensors(items, positions)].shape
    assert torch.equal(found, x[with_tensors(items, positions)])


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(indices(advanced=False), st.booleans())
def test_writing_equals_eager(items, one_number):
    x, positions = torch.arange(60.0).reshape(SIZES), positions_of(items)
    value = 7 if one_number else torch.full_like(x[with_tensors(items, positions)], 9)

    def write(x, *positions):
        x = x * 1
        x[with_tensors(items, positions)] = value
        return x

    assert torch.equal(pilotage.inference(Function(write))(x, *positions), write(x, *positions))


def test_one_program_works_for_all_indices(assert_equal):
    x = torch.arange(12.0).reshape(3, 4)
    program = pilotage.inference(
        Function(lambda x, i: (x[i], x.select(1, i), x.narrow(1, i, 2), torch.narrow(x, 0, i, 1)))
    )
    for number in (0, 1, 2, -2):
        i = torch.tensor(number)
        assert_equal(program(x, i), (x[number], x.select(1, number), x.narrow(1, number, 2), x.narrow(0, number, 1)))


def test_an_index_out_of_range_is_an_error():
    program = pilotage.inference(Function(lambda x, i: x[i] * 1))
    with pytest.raises((IndexError, RuntimeError), match="out of"):
        program(torch.zeros(3), torch.tensor(3))


class Table(nn.Module):
    """A row of a trained table, and a cache of the last row."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.arange(12.0).reshape(3, 4) / 12)
        self.register_buffer("seen", torch.zeros(3, 4))

    def forward(self, x: Tensor, i: Tensor) -> Tensor:
        row = self.rows[i] * x
        self.seen[i] = row.detach() + self.seen[i]
        return pilotage.mark_loss(row.square().sum() + self.seen.sum())


def test_a_row_is_trained_and_a_cache_written_as_in_eager(twins, assert_same_state):
    mine, theirs = twins(Table)
    step = pilotage.training(mine, torch.optim.SGD(mine.parameters(), lr=0.1))
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.1)
    for number in (1, 2, -1, 0):
        x = torch.arange(4.0) + number
        step(x, torch.tensor(number))
        optimizer.zero_grad()
        theirs(x, torch.tensor(number)).backward()
        optimizer.step()
    assert_same_state(mine, theirs)


def writes_into_a_part(x, i):
    x = x * 1
    x[i].add_(1)
    return x


def writes_into_a_view_of_a_part(x, i):
    x = x * 1
    x.narrow(0, i, 2)[0].zero_()
    return x


def uses_the_whole_after_writing_into_a_part(x, i):
    x = x * 1
    row = x[i]
    row.add_(1)
    total = x.sum()
    x[i] = row
    return total


def uses_a_part_after_a_write(x, i):
    x = x * 1
    row = x[i]
    x.add_(1)
    return row + 1


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (writes_into_a_part, r"x\[i\] = x\[i\] \+ y"),
        (writes_into_a_view_of_a_part, r"x\[i\] = x\[i\] \+ y"),
        (uses_the_whole_after_writing_into_a_part, r"x\[i\] = x\[i\] \+ y"),
        (uses_a_part_after_a_write, r"x\[i\]\.clone\(\)"),
    ],
)
def test_code_that_needs_a_view_is_refused_with_the_users_line(function, words):
    with pytest.raises(CaptureError, match=rf"{words}(?s:.*)in {function.__name__}:"):
        pilotage.inference(Function(function))(torch.zeros(3, 4), torch.tensor(1))


def test_the_advised_rewrites_run(assert_equal):
    def adds(x, i):
        x = x * 1
        old = x[i].clone()
        x[i] = x[i] + 1
        x[i] += 1
        x[i, 1] *= 3
        row = x[i]
        row.sub_(5)
        x[i] = row
        return x, old + x[i]

    x, i = torch.arange(12.0).reshape(3, 4), torch.tensor(1)
    assert_equal(pilotage.inference(Function(adds))(x, i), adds(x, i))
