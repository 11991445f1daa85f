import io
import re

from rich.console import Console

from pilotage.cli.monitor import display
from pilotage.cli.monitor.lines import BOXES
from pilotage.cli.monitor.screen import MONITOR, screen


class Terminal(io.TextIOWrapper):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def terminal(encoding: str) -> Terminal:
    return Terminal(io.BytesIO(), encoding=encoding)


def written(to: Terminal) -> str:
    to.flush()
    return to.buffer.getvalue().decode(to.encoding)


def test_colours_do_not_change_the_text(survey, process):
    lines = screen(survey(process()), MONITOR, BOXES, 120)
    console = Console(file=io.StringIO(), width=200, force_terminal=True, color_system="truecolor")
    console.print(display.coloured(lines))
    bare = re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue())
    assert [line.rstrip() for line in bare.splitlines()] == display.plain(lines).splitlines()


def test_a_terminal_gets_boxes_and_colours(monkeypatch, survey, process):
    to = terminal("utf-8")
    monkeypatch.setattr("sys.stdout", to)
    monkeypatch.setenv("TERM", "xterm-256color")
    lines = screen(survey(process()), MONITOR, display.terminal_drawing(), 120)
    display.show(lines)
    assert "┼──" in written(to)
    assert "\x1b[" in written(to)


def test_a_terminal_without_box_characters_gets_ascii(monkeypatch, survey, process):
    to = terminal("ascii")
    monkeypatch.setattr("sys.stdout", to)
    lines = screen(survey(process(command="python 日本.py")), MONITOR, display.terminal_drawing(), 120)
    display.show(lines)
    assert "+--" in written(to)
    assert "python ??.py" in written(to)


def test_a_plain_terminal_is_refreshed_in_place_and_not_scrolled(monkeypatch, survey, process):
    to = terminal("ascii")
    monkeypatch.setattr("sys.stdout", to)
    monkeypatch.setenv("LINES", "8")
    with display.in_place() as show:
        for _ in range(2):
            show(screen(survey(process()), MONITOR, display.terminal_drawing(), 120))
    _, first, second = written(to).split("\x1b[H\x1b[J")
    assert first == second
    assert len(first.splitlines()) == 7
    assert first.endswith("more lines do not fit\n")


def test_without_a_terminal_screens_follow_each_other(monkeypatch, survey, process):
    to = io.StringIO()
    monkeypatch.setattr("sys.stdout", to)
    with display.in_place() as show:
        for _ in range(2):
            show(screen(survey(process()), MONITOR, display.terminal_drawing(), 120))
    assert "\x1b" not in to.getvalue()
    assert to.getvalue().count("205698") == 2
