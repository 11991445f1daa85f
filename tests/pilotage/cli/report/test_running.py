"""`pilotage report`."""

import json
import webbrowser
from pathlib import Path

import pytest

from pilotage.cli.main import main

SMALL = (Path(__file__).parents[2] / "prediction/small.json").read_text()


class Browser(webbrowser.BaseBrowser):
    """A browser with windows that only notes what it is asked to open."""

    def __init__(self) -> None:
        super().__init__("noting")
        self.opened: list[str] = []

    def open(self, url, new=0, autoraise=True):
        self.opened.append(url)
        return True


@pytest.fixture
def browser(monkeypatch) -> Browser:
    noting = Browser()
    monkeypatch.setattr(webbrowser, "get", lambda using=None: noting)
    return noting


@pytest.fixture
def report(tmp_path) -> Path:
    path = tmp_path / "first.json"
    path.write_text(SMALL)
    return path


def test_the_page_is_written_beside_the_report_and_opened(report, browser, capsys):
    assert main(["report", str(report)]) == 0
    page = report.with_suffix(".html")
    assert "Two layers" in page.read_text()
    assert browser.opened == [page.resolve().as_uri()]
    assert str(page) in capsys.readouterr().out


def test_the_page_goes_where_it_is_wanted_without_being_opened(report, browser, tmp_path):
    wanted = tmp_path / "page.html"
    assert main(["report", str(report), "-o", str(wanted), "--no-open"]) == 0
    assert wanted.is_file()
    assert browser.opened == []


def test_without_a_browser_the_command_says_what_to_do(report, monkeypatch, capsys):
    monkeypatch.setattr(webbrowser, "get", lambda using=None: webbrowser.GenericBrowser("lynx"))
    assert main(["report", str(report)]) == 0
    assert "open the file yourself" in capsys.readouterr().out


def test_two_reports_become_one_page(report, browser, tmp_path):
    second = tmp_path / "second.json"
    second.write_text(json.dumps(json.loads(SMALL) | {"title": "Another"}))
    assert main(["report", str(report), str(second), "--no-open"]) == 0
    assert "<title>Two layers and Another</title>" in report.with_suffix(".html").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.json"], "missing.json cannot be read"),
        (["first.json", "first.json", "first.json"], "Give one, or two to see them side by side"),
        (["first.json", "-o", "first.json"], "is the report itself"),
        (["broken.json"], "broken.json: This is not JSON"),
        (["first.json", "-o", "first.json/page.html"], "cannot be written"),
    ],
)
def test_what_cannot_be_shown_is_one_line(report, monkeypatch, capsys, arguments, said):
    monkeypatch.chdir(report.parent)
    Path("broken.json").write_text("{")
    assert main(["report", *arguments, "--no-open"]) == 1
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
