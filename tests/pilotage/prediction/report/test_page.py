"""The page as text: complete, closed against what reports contain, and small."""

import base64
import copy
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from pilotage.errors import ReportError
from pilotage.prediction.document import parse_report
from pilotage.prediction.report import page_of
from pilotage.prediction.report.page import filled, script_data

SMALL = json.loads((Path(__file__).parents[1] / "small.json").read_text())
HOSTILE = "</script><script>alert(1)</script><!-- & \u2028 ' \" <img src=x onerror=alert(2)>"


class Elements(HTMLParser):
    """The elements of a page with their attributes, and the content of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: str | None = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._open = tag

    def handle_data(self, data):
        if self._open is not None:
            self.texts.setdefault(self._open, []).append(data)

    def handle_endtag(self, tag):
        self._open = None


def hostile() -> dict:
    """The small report with an attack wherever a text may stand."""
    document = copy.deepcopy(SMALL)
    device = document["devices"][0]
    document["title"] = document["program"]["name"] = document["command"][0] = HOSTILE
    device["title"] = device["insights"][0] = device["operations"][0]["name"] = device["operations"][0]["module"] = (
        HOSTILE
    )
    device["operations"][0]["source"] = {"file": HOSTILE, "line": 1, "text": HOSTILE}
    device["memory"]["by_category"] = {HOSTILE: 5}
    device["host"]["entries"][0]["name"] = HOSTILE
    return document


def page(*documents: dict) -> str:
    return page_of([parse_report(json.dumps(document)) for document in documents or (SMALL,)])


def data_of(text: str) -> dict:
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(found)


def test_the_page_is_complete_and_loads_nothing():
    text = page()
    assert text.startswith("<!DOCTYPE html>")
    assert "{{" not in text.split("<script")[0]
    for tag, attributes in Elements(text).tags:
        assert "src" not in attributes
        assert tag != "link" or attributes["href"].startswith("data:")
    assert not re.search(r"@import|url\(\s*['\"]?http", text)


def test_the_page_carries_the_whole_report():
    (report,) = data_of(page())["reports"]
    (device,) = report["devices"]
    assert report["title"] == "Two layers"
    assert device["memory"] == SMALL["devices"][0]["memory"]
    columns = device["operations"]
    assert columns["count"] == 2
    assert [columns["texts"][number] for number in columns["name"]] == ["aten.addmm", "aten.add_"]
    assert columns["sources"] == [SMALL["devices"][0]["operations"][0]["source"]]
    assert columns["source"] == [0, None]
    assert columns["measured_bytes"] == [1200, None]


def test_what_a_report_contains_stays_text():
    text = page(hostile())
    elements = Elements(text)
    assert [tag for tag, _ in elements.tags].count("script") == 2
    assert "img" not in [tag for tag, _ in elements.tags]
    assert "".join(elements.texts["title"]) == HOSTILE
    (report,) = data_of(text)["reports"]
    assert report["title"] == HOSTILE
    assert report["devices"][0]["operations"]["sources"][0]["text"] == HOSTILE


def test_only_our_own_script_may_run():
    text = page(hostile())
    (allowed,) = re.findall(r"script-src 'sha256-([^']+)'", text)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() == allowed
    assert "default-src 'none'" in text


def test_data_cannot_end_its_script_element():
    written = script_data({"text": "</script> <!-- & \u2029 \ud800"})
    assert not set("<>&\u2029") & set(written)
    written.encode()
    assert json.loads(written) == {"text": "</script> <!-- & \u2029 \ud800"}


def test_inserted_text_is_not_searched_for_placeholders():
    assert filled("a {{one}} b {{two}} c", {"one": "{{two}}", "two": "2"}) == "a {{two}} b 2 c"


def test_two_reports_share_a_page_and_three_do_not():
    other = copy.deepcopy(SMALL) | {"title": "Three layers"}
    text = page(SMALL, other)
    assert [report["title"] for report in data_of(text)["reports"]] == ["Two layers", "Three layers"]
    assert "<title>Two layers and Three layers</title>" in text
    with pytest.raises(ReportError, match="3 were given"):
        page(SMALL, SMALL, SMALL)


def test_ten_thousand_operations_take_less_than_a_megabyte_and_a_half():
    document = copy.deepcopy(SMALL)
    device = document["devices"][0]
    device["operations"] = [
        device["operations"][0] | {"index": number, "flops": 10**9 + number, "seconds": 1e-5 + number * 1e-9}
        for number in range(10_000)
    ]
    assert len(page(document).encode()) < 1_500_000
