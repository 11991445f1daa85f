"""Run `pilotage report`."""

from __future__ import annotations

import webbrowser
from argparse import Namespace
from pathlib import Path

from pilotage.cli.formatting import format_size
from pilotage.errors import ReportError

__all__ = ["run"]


def run(arguments: Namespace) -> int:
    """Write the page and open it."""
    from pilotage.prediction.document import read_report
    from pilotage.prediction.report.page import MOST_REPORTS, page_of
    from pilotage.whole_files import write_whole

    paths: list[Path] = arguments.files
    if len(paths) > MOST_REPORTS:
        raise ReportError(f"{len(paths)} files were given. Give one, or two to see them side by side.")
    page = page_of([read_report(path) for path in paths]).encode()
    output = arguments.output or paths[0].with_suffix(".html")
    if output in paths:
        raise ReportError(f"{output} is the report itself. Name another file with -o.")
    try:
        write_whole(output, page, durable=False)
    except OSError as error:
        raise ReportError(f"{output} cannot be written: {error.strerror or error}.") from None
    print(f"Report: {output} ({format_size(len(page))})")
    if not arguments.no_open:
        _open(output)
    return 0


def _open(path: Path) -> None:
    """Open a file in a graphical browser; without one, say what to do."""
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        browser = None
    # GenericBrowser means a text browser, which would take over the terminal and runs no scripts.
    if browser is None or type(browser) is webbrowser.GenericBrowser or not browser.open(path.resolve().as_uri()):
        print("No graphical browser found: open the file yourself.")
