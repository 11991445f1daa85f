"""How large the page of a report is, and how soon it can be used in Chromium.

    python -m benchmarks.prediction.page                    # A21, and the same with 10,000 operations
    python -m benchmarks.prediction.page --report a.json    # a report of your own
    python -m benchmarks.prediction.page --pictures folder  # and what it looks like: light, dark, narrow, printed

A page can be used as soon as its script has run and the first frame is drawn. Then each tab is chosen once, and an
operation is searched for; the longest time until such a change is drawn is printed too.
"""

from __future__ import annotations

import argparse
import base64
import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks.prediction.predicted import subject_of
from benchmarks.prediction.programs import programs
from pilotage.prediction.devices import device_model
from pilotage.prediction.document import Report, read_report
from pilotage.prediction.report import page_of
from pilotage.prediction.reporting import report_of
from pilotage.prediction.scripts.valueless import Valueless
from tools.chromium import Chromium, Page, find_chromium

PROGRAM = "A21, batch 2, 640 x 1024, float32"
MANY = 10_000


def main() -> None:
    """Write the pages, open them, and print their sizes and times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", type=Path, help="a report instead of A21's")
    parser.add_argument("--pictures", type=Path, help="a folder for pictures of every view")
    arguments = parser.parse_args()
    path = find_chromium()
    if path is None:
        raise SystemExit("Chromium was not found.")
    report = _a21() if arguments.report is None else read_report(arguments.report)
    with tempfile.TemporaryDirectory() as name, Chromium(path, Path(name) / "profile") as browser:
        for title, each in (("as it is", report), (f"with {MANY:,} operations", _longer(report))):
            file = Path(name) / "page.html"
            file.write_text(page_of([each]), encoding="utf-8")
            page = browser.open(file)
            ready, slowest = _ready(page), _slowest_change(page)
            problems = page.problems()
            page.close()
            size = file.stat().st_size
            print(
                f"{report.title}, {title}: {len(each.devices[0].operations):,} operations, {size / 1e6:.2f} MB, "
                f"usable after {ready:.2f} s, slowest change {slowest:.2f} s, {len(problems)} console errors",
                flush=True,
            )
        if arguments.pictures is not None:
            _take_pictures(browser, report, Path(name), arguments.pictures)


def _a21() -> Report:
    """The report of A21 on two kinds of devices, all changes priced."""
    program = next(each for each in programs() if each.name == PROGRAM)
    valueless = Valueless()
    subject = subject_of(program, valueless)
    return report_of(subject, [device_model("bow"), device_model("h200")], mode=valueless.mode)


def _longer(report: Report) -> Report:
    """The same report with many operations on each device."""
    devices = []
    for device in report.devices:
        times = -(-MANY // max(1, len(device.operations)))
        operations = (device.operations * times)[:MANY]
        numbered = tuple(replace(each, index=place) for place, each in enumerate(operations))
        devices.append(replace(device, operations=numbered))
    return replace(report, devices=tuple(devices))


def _ready(page: Page) -> float:
    """Seconds from the start of navigation until the script has run and a frame is drawn."""
    page.frame()
    entry = "performance.getEntriesByType('navigation')[0]"
    loaded, drawn = page.run(
        f"[{entry}.loadEventEnd, performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0]"
    )
    return max(loaded, drawn) / 1e3


_CLICK = "document.getElementById('tab-{}').click()"
_SEARCH = (
    "const search = document.querySelector('#panel-operations input'); search.value = '{}'; "
    "search.dispatchEvent(new Event('input'))"
)


def _slowest_change(page: Page) -> float:
    """The longest time from a click, or from letters in the search, until the next frame is drawn."""
    found = [_until_drawn(page, _CLICK.format(tab)) for tab in _tabs(page)]
    page.run(_CLICK.format("operations"))
    found += [_until_drawn(page, _SEARCH.format(text)) for text in ("c", "conv", "conv backward")]
    return max(found) / 1e3


def _until_drawn(page: Page, change: str) -> float:
    """The milliseconds of a change with the frame that follows it."""
    drawn = "new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.now() - begin), 0)))"
    taken: float = page.run(f"(() => {{ const begin = performance.now(); {change}; return {drawn} }})()")
    return taken


def _tabs(page: Page) -> list[str]:
    names: list[str] = page.run("[...document.querySelectorAll('[role=tab]')].map((tab) => tab.id.slice(4))")
    return names


def _take_pictures(browser: Chromium, report: Report, folder: Path, pictures: Path) -> None:
    pictures.mkdir(parents=True, exist_ok=True)
    file = folder / "page.html"
    file.write_text(page_of([report]), encoding="utf-8")
    for name, width, scheme in (("light", 1400, "light"), ("dark", 1400, "dark"), ("narrow", 390, "light")):
        page = browser.open(file, width=width, scheme=scheme)
        for tab in _tabs(page):
            page.run(f"document.getElementById('tab-{tab}').click()")
            (pictures / f"{name}-{tab}.png").write_bytes(page.picture(whole=True))
        page.close()
    page = browser.open(file)
    printed = page.command("Page.printToPDF", printBackground=True)["data"]
    (pictures / "printed.pdf").write_bytes(base64.b64decode(printed))
    page.close()


if __name__ == "__main__":
    main()
