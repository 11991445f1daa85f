"""The page in a real browser: every tab renders, search works, and the console stays empty."""

import copy
import json
from pathlib import Path

import pytest

from pilotage.prediction.document import parse_report
from pilotage.prediction.report import page_of

pytestmark = pytest.mark.slow

SMALL = json.loads((Path(__file__).parents[1] / "small.json").read_text())
TABS = ["summary", "memory", "operations", "layers", "tiles", "pipeline", "host", "details"]
COUNT = 10_000


def large() -> dict:
    """The small report with ten thousand operations and hostile texts."""
    document = copy.deepcopy(SMALL) | {"title": "Many </script><script>document.title='broken'</script>"}
    device = document["devices"][0]
    sample = device["operations"][0]
    device["operations"] = [
        sample
        | {
            "index": number,
            "name": f"aten.kind{number % 20}",
            "module": f"layers.{number % 12}.part",
            "phase": ("forward", "backward", "update")[number * 3 // COUNT],
            "seconds": 1e-6 * (number % 977),
            "measured_seconds": None,
        }
        for number in range(COUNT)
    ]
    other = copy.deepcopy(device) | {"name": "h200", "title": "NVIDIA H200", "pipeline": None, "fits": True}
    other["memory"]["tiles"] = None
    document["devices"].append(other)
    return document


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    first = parse_report(json.dumps(large()))
    second = parse_report(json.dumps(SMALL))
    found = {"one": folder / "one.html", "two": folder / "two.html"}
    found["one"].write_text(page_of([first]))
    found["two"].write_text(page_of([second, first]))
    return found


@pytest.fixture(scope="module")
def page(chromium, pages):
    opened = chromium.open(pages["one"])
    yield opened
    opened.close()


def show(page, tab: str) -> str:
    """Choose a tab, and return what it shows."""
    page.run(f"document.getElementById('tab-{tab}').click()")
    page.frame()
    return page.run(f"document.getElementById('panel-{tab}').innerText")


def test_every_tab_renders_without_a_console_error(page):
    assert page.run("[...document.querySelectorAll('[role=tab]')].map((tab) => tab.id.slice(4))") == TABS
    shown = {tab: show(page, tab) for tab in TABS}
    assert all(shown.values())
    assert "does not fit" in shown["summary"]
    assert "What to change" in shown["summary"]
    assert "The peak by source line" in shown["memory"]
    assert "self.first = Linear(8, 2)" in shown["memory"]
    assert "10,000 of 10,000 operations" in shown["operations"]
    assert "Map of the tiles" in shown["tiles"]
    assert "Schedule of one update" in shown["pipeline"]
    assert "load a batch" in shown["host"]
    assert "1.85 GHz" in shown["details"]
    assert page.problems() == []


def test_hostile_texts_change_nothing(page):
    assert page.run("document.title") == large()["title"]
    assert page.run("document.querySelectorAll('script').length") == 2


def test_search_finds_operations_and_counts_them(page):
    show(page, "operations")
    found = page.run(
        "(() => { const search = document.querySelector('#panel-operations input');"
        " search.value = 'KIND7 layers.3'; search.dispatchEvent(new Event('input'));"
        " return document.querySelector('#panel-operations .found').textContent })()"
    )
    expected = [number for number in range(COUNT) if f"kind{number % 20}".startswith("kind7") and number % 12 == 3]
    assert found.startswith(f"{len(expected)} of 10,000 operations")
    first = page.run("document.querySelector('#panel-operations .row').innerText")
    assert "kind7" in first
    page.run(
        "(() => { const search = document.querySelector('#panel-operations input'); search.value = 'nothing like it';"
        " search.dispatchEvent(new Event('input')) })()"
    )
    assert "Nothing matches" in page.run("document.querySelector('#panel-operations .rows').innerText")
    page.run(
        "(() => { const search = document.querySelector('#panel-operations input'); search.value = '';"
        " search.dispatchEvent(new Event('input')) })()"
    )


def test_only_visible_operations_are_in_the_document_and_all_can_be_reached(page):
    show(page, "operations")
    assert page.run("document.querySelectorAll('#panel-operations .row').length") < 100
    page.run("document.querySelector('#panel-operations .rows').scrollTop = 1e9")
    page.frame()
    rows = page.run(
        "[...document.querySelectorAll('#panel-operations .row')].map((row) => row.innerText.split('\\n')[0])"
    )
    assert rows[-1] == str(COUNT - 1)
    page.run("document.querySelector('#panel-operations .rows').scrollTop = 0")


def test_a_click_on_a_column_sorts(page):
    show(page, "operations")
    buttons = "[...document.querySelectorAll('#panel-operations .head button')]"
    click = f"{buttons}.find((button) => button.textContent.startsWith('Predicted')).click()"
    page.run(click)
    page.frame()
    header = "document.querySelector('#panel-operations [aria-sort]').getAttribute('aria-sort')"
    assert page.run(header) == "descending"
    assert "976\u00a0µs" in page.run("document.querySelector('#panel-operations .row').innerText")
    page.run(click)
    assert page.run(header) == "ascending"


def test_keys_move_between_tabs_rows_and_the_search(page):
    page.run("document.getElementById('tab-summary').click(); document.getElementById('tab-summary').focus()")
    page.press("ArrowRight")
    assert page.run("document.activeElement.id") == "tab-memory"
    show(page, "operations")
    page.run("document.querySelector('#panel-operations .rows').focus()")
    page.press("ArrowDown")
    page.press("ArrowDown")
    assert page.run("document.querySelector('#panel-operations .row.active').getAttribute('aria-rowindex')") == "3"
    assert page.run("document.querySelector('#panel-operations .chosen-row').innerText")
    page.press("/")
    assert page.run("document.activeElement.type") == "search"


def test_another_device_is_shown_with_its_own_tabs(page):
    page.run(
        "(() => { const select = document.getElementById('device-0'); select.value = '1';"
        " select.dispatchEvent(new Event('change')) })()"
    )
    assert "NVIDIA H200" in show(page, "summary")
    assert page.run("document.getElementById('tab-tiles')") is None
    page.run(
        "(() => { const select = document.getElementById('device-0'); select.value = '0';"
        " select.dispatchEvent(new Event('change')) })()"
    )
    assert page.problems() == []


def test_two_reports_are_compared_side_by_side(chromium, pages):
    page = chromium.open(pages["two"])
    text = show(page, "compare")
    assert "Operations" in text
    assert "9,998" in text
    assert "aten.kind7" in text
    for tab in ("summary", *TABS):
        show(page, tab)
    assert page.run("document.querySelectorAll('#panel-memory .pane').length") == 2
    assert page.problems() == []
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_screen_never_scrolls_sideways(chromium, pages, scheme):
    page = chromium.open(pages["one"], width=390, height=800, scheme=scheme)
    for tab in TABS:
        show(page, tab)
        assert page.run("document.documentElement.scrollWidth") <= 390, tab
    dark = page.run("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 29)"
    assert dark == (scheme == "dark")
    assert page.problems() == []
    page.close()


def test_all_views_are_printed(chromium, pages):
    page = chromium.open(pages["one"])
    page.run("dispatchEvent(new Event('beforeprint'))")
    page.command("Emulation.setEmulatedMedia", media="print")
    page.frame()
    for tab in TABS:
        assert page.run(f"document.getElementById('panel-{tab}').getClientRects().length"), tab
    for tab in ("memory", "tiles", "pipeline", "host"):
        drawn = f"[...document.querySelectorAll('#panel-{tab} :is(.chart, canvas)')].map((each) => each.clientWidth)"
        widths = page.run(drawn)
        assert widths, f"no chart of {tab} is printed"
        assert min(widths) > 20, (tab, widths)
    assert page.run("document.querySelectorAll('#panel-operations .row').length") == 150
    assert "The first 150 of 10,000 rows." in page.run("document.getElementById('panel-operations').innerText")
    assert page.run("document.querySelector('.tabs').getClientRects().length") == 0
    page.run("dispatchEvent(new Event('afterprint'))")
    assert page.run("document.documentElement.classList.contains('printing')") is False
    page.close()


def test_whole_numbers_have_no_decimals(chromium, pages):
    page = chromium.open(pages["two"])
    page.run("document.getElementById('tab-operations').click()")
    page.frame()
    cells = page.run("[...document.querySelectorAll('#panel-operations .cell')].map((each) => each.textContent)")
    figures = page.run("document.querySelector('#panel-compare table').innerText")
    page.close()
    assert "18" in cells
    assert "18.0" not in cells
    assert "5,000 times" in figures


def test_a_narrow_screen_shows_every_column_of_what_to_change(chromium, pages):
    page = chromium.open(pages["one"], width=390, height=800)
    hidden = page.run(
        "[...document.querySelectorAll('#panel-summary .scroll')].filter((each) => each.scrollWidth > each.clientWidth)"
        ".map((each) => each.getAttribute('aria-label'))"
    )
    labels = page.run("[...document.querySelectorAll('#panel-summary .stacked td')].map((each) => each.dataset.label)")
    page.close()
    assert hidden == []
    assert {"Fits", "Peak", "Update", "Throughput"} <= set(labels)
