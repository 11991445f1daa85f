from hypothesis import given
from hypothesis import strategies as st

from pilotage.cli.monitor.display import plain
from pilotage.cli.monitor.lines import ASCII, draw
from pilotage.cli.monitor.table import Cell, Column, Table, cut, width_of

cells = st.lists(st.text(max_size=30).map(Cell), min_size=3, max_size=3).map(tuple)
columns = st.lists(
    st.builds(
        Column,
        title=st.text("abc", min_size=1, max_size=8),
        group=st.sampled_from(["one", "another group with a long name"]),
        cells=cells,
        rank=st.integers(0, 100),
        least=st.none() | st.integers(3, 10),
        align=st.sampled_from("<^>"),
    ),
    min_size=1,
    max_size=8,
).map(lambda drawn: sorted(drawn, key=lambda column: column.group))


@given(columns, st.integers(20, 200))
def test_all_lines_are_equally_wide_and_fit_unless_two_columns_do_not(drawn, width):
    table = Table(tuple(drawn)).fitted(width)
    lines = plain(draw(table, ASCII)).splitlines()
    assert len({width_of(line) for line in lines}) == 1
    assert width_of(lines[0]) <= width or len(table.columns) <= 2


@given(columns)
def test_with_enough_room_nothing_is_cut(drawn):
    table = Table(tuple(drawn)).fitted(10_000)
    assert [column.title for column in table.columns] == [column.title for column in drawn]
    text = plain(draw(table, ASCII))
    for column in drawn:
        assert all(cell.text.strip() in text for cell in column.cells)


def test_the_least_important_columns_are_dropped_first():
    table = Table(tuple(Column(name, "", (Cell("x" * 10),), rank) for name, rank in (("a", 1), ("b", 3), ("c", 2))))
    assert [column.title for column in table.fitted(27).columns] == ["b", "c"]


def test_wide_characters_count_as_two():
    assert width_of("日本") == 4
    assert width_of("e\u0301") == 1


@given(st.text(), st.integers(0, 40))
def test_cut_text_fits(text, width):
    assert width_of(cut(text, width, "...")) <= width or width_of(text) <= width


def test_control_characters_are_replaced():
    assert Cell("\x1b[31mred\x07\n").text == "?[31mred??"
