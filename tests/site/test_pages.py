"""The pages of the site: no broken link, nothing from the network, and a search that knows what people look for."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytestmark = pytest.mark.slow


class Addresses(HTMLParser):
    """The links, the loaded files and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.anchors: set[str] = {""}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.add(given["href"])
        elif tag == "link" and given.get("rel") in ("stylesheet", "icon", "preconnect", "next", "prev"):
            self.loaded.add(given["href"])
        elif "src" in given:
            self.loaded.add(given["src"])


@pytest.fixture(scope="module")
def pages(site) -> dict[Path, Addresses]:
    return {path: Addresses(path.read_text()) for path in site.rglob("*.html")}


def test_there_is_a_page_for_each_kind_of_reader(site):
    for name in ("pytorch", "poptorch", "popdist", "gaudi", "physics", "install"):
        assert (site / f"start/{name}.html").exists()
    for name in ("index", "faster", "tutorials/bert", "tutorials/pipelining", "data-loading", "reference/pilotage"):
        assert (site / f"{name}.html").exists()


def test_no_link_and_no_anchor_is_broken(site, pages):
    broken = []
    for page, addresses in pages.items():
        for link in addresses.links | addresses.loaded:
            parts = urlsplit(link)
            if parts.scheme or page.name == "404.html":
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if target.is_dir():
                target /= "index.html"
            if not target.exists() or (target in pages and unquote(parts.fragment) not in pages[target].anchors):
                broken.append(f"{page.relative_to(site)}: {link}")
    assert not broken


def test_nothing_is_loaded_from_the_network(pages):
    remote = {
        address for page in pages.values() for address in page.loaded if urlsplit(address).scheme in ("http", "https")
    }
    assert not remote


def test_the_reference_has_signatures_and_command_lines(site):
    assert "Wrap a module so that each call trains it" in (site / "reference/pilotage.html").read_text()
    assert "gradient_accumulation" in (site / "reference/options.html").read_text()
    commands = (site / "reference/command-lines.html").read_text()
    assert all(f'id="{name}"' in commands for name in ("pilotage-port", "poprun", "gc-monitor", "hl-smi"))


def test_gradient_clipping_is_in_the_index_of_the_search(site):
    entries = json.loads((site / "search/search_index.json").read_text())["docs"]
    found = [entry for entry in entries if "gradient clipping" in f"{entry['title']} {entry['text']}".lower()]
    assert found
    assert (site / "search/search_index.js").read_text().startswith("var __index = ")
