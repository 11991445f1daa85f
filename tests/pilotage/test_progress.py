"""Progress bars in a terminal, a notebook and a log."""

import builtins
import io
import re
import sys
from types import SimpleNamespace

from pilotage import progress
from pilotage.progress import has_display, progress_bar


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_a_bar_that_moves(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert has_display()
    assert list(progress_bar(range(3), description="epoch 1/5", unit="step")) == [0, 1, 2]
    drawn = terminal.getvalue()
    assert drawn.startswith("\repoch 1/5:   0%|")
    assert drawn.split("\r")[-1].startswith("epoch 1/5: 100%|")


def test_a_log_gets_the_last_line_only_if_the_work_is_short(capsys):
    for _ in progress_bar(range(3), description="epoch 1/5", unit="step"):
        assert capsys.readouterr().err == ""
    assert re.fullmatch(r"epoch 1/5: 100%\|█+\| 3/3 \[.*step/s\]\n", capsys.readouterr().err)


def test_the_description_may_have_the_name_that_tqdm_gives_it(capsys):
    list(progress_bar(range(3), desc="epoch 1/5"))
    assert capsys.readouterr().err.startswith("epoch 1/5: 100%|")


def test_a_log_gets_a_line_each_time_the_interval_has_passed(capsys, monkeypatch):
    now = 1000.0
    monkeypatch.setattr("pilotage.progress.time.monotonic", lambda: now)
    with progress_bar(total=100, description="steps") as bar:
        bar._time = lambda: now
        bar.start_t = bar.last_print_t = now
        for _ in range(100):
            now += 1.0
            bar.update()
    log = capsys.readouterr().err
    lines = log.splitlines()
    assert [re.search(r"(\d+)/100", line)[1] for line in lines] == ["30", "60", "90", "100"]
    assert not re.search(r"[\r\x1b]", log)
    assert progress.SECONDS == 30.0


def test_an_inner_bar_leaves_nothing_in_a_log(capsys):
    for _ in progress_bar(range(2), description="outer"):
        list(progress_bar(range(2), description="inner", leave=False))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("outer: 100%")


def test_an_empty_or_endless_source_can_be_shown():
    assert list(progress_bar([])) == []
    assert list(progress_bar(iter("ab"))) == ["a", "b"]


def test_a_notebook_has_a_display(monkeypatch):
    assert not has_display()
    shell = SimpleNamespace(config={"IPKernelApp": {}})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert has_display()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert not has_display()


def test_without_tqdm_the_items_come_and_nothing_is_shown(capsys, monkeypatch):
    ordinary = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("tqdm"):
            raise ImportError(name)
        return ordinary(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    assert list(progress_bar("ab")) == ["a", "b"]
    with progress_bar(total=2) as bar:
        bar.update(2)
        bar.set_postfix_str("loss 0.5")
        bar.close()
        assert bar.n == 2
    assert capsys.readouterr().err == ""
