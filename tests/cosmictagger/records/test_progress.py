"""The progress bar is drawn on terminals only."""

from __future__ import annotations

import io

from cosmictagger.records.progress import progress, say, vanishing_bars


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_how_far_the_work_is(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with progress(2, "training") as bar:
        bar.update(1)
        bar.set_postfix_str("loss 0.5")
        bar.update(1)
    last = terminal.getvalue().split("\r")[-1]
    assert last.startswith("training: 100%")
    assert "2/2" in last
    assert "loss 0.5" in last


def test_files_and_quiet_processes_get_no_bar(monkeypatch):
    for stream, shown in ((io.StringIO(), True), (Terminal(), False)):
        monkeypatch.setattr("sys.stderr", stream)
        with progress(2, "training", shown=shown) as bar:
            bar.update(1)
            bar.set_postfix_str("loss 0.5")
        assert stream.getvalue() == ""


def test_a_vanishing_bar_leaves_an_empty_line(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with vanishing_bars(), progress(1, "training") as bar:
        bar.update(1)
    *_, last = terminal.getvalue().rstrip("\r").split("\r")
    assert last.strip() == ""
    with progress(1, "training") as bar:
        bar.update(1)
    assert "100%" in terminal.getvalue().split("\r")[-1]


def test_lines_are_printed_with_and_without_a_terminal(monkeypatch, capsys):
    say("to a file")
    monkeypatch.setattr("sys.stderr", Terminal())
    say("to a terminal")
    assert capsys.readouterr().out == "to a file\nto a terminal\n"
