"""Open a page in the user's browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path

__all__ = ["open_page"]


def open_page(path: Path) -> None:
    """Open a file in a graphical browser; without one, say what to do."""
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        browser = None
    # GenericBrowser means a text browser, which would take over the terminal and runs no scripts.
    if browser is None or type(browser) is webbrowser.GenericBrowser or not browser.open(path.resolve().as_uri()):
        print("No graphical browser found: open the file yourself.")
