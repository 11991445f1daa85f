import io
import sys

from cosmictagger.data.generator.progress import occasional, terminal_progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_gets_a_bar(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with terminal_progress("Generating") as progress:
        progress(1, 4)
        progress(4, 4)
    assert "Generating" in terminal.getvalue()
    assert "4/4" in terminal.getvalue()


def test_without_a_terminal_nothing_is_printed(capsys):
    with terminal_progress("Generating") as progress:
        assert progress is None
    assert capsys.readouterr().err == ""


def test_a_log_gets_a_few_reports():
    seen = []
    report = occasional(lambda done, total: seen.append(done))
    for done in range(1, 11):
        report(done, 10)
    assert seen == [3, 5, 8, 10]
