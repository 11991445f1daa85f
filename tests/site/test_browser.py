"""The site in headless Chromium, opened from the disk as after `make docs`."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
AT_ONCE = 12
"""How many pages one window shows."""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")]


def opened(address: str, *options: str, profile: Path) -> subprocess.CompletedProcess[str]:
    """The document after its scripts have run, and on standard error what they wrote to the console."""
    command = [
        str(CHROMIUM),
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={profile}",
        "--enable-logging=stderr",
        "--window-size=1200,900",
        "--virtual-time-budget=20000",
        *options,
        address,
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=280, check=True)


def console_errors(log: str) -> list[str]:
    lines = [line for line in log.splitlines() if "CONSOLE" in line]
    return [line for line in lines if not re.search(r":(INFO|VERBOSE):CONSOLE", line) or "error" in line.lower()]


def test_no_page_writes_an_error_to_the_console(site, tmp_path):
    pages = sorted(site.rglob("*.html"))
    errors = []
    for start in range(0, len(pages), AT_ONCE):
        frames = "".join(f'<iframe src="{page.as_uri()}"></iframe>' for page in pages[start : start + AT_ONCE])
        window = site / f"window-{start}.htm"
        window.write_text(f"<!doctype html><title>all</title>{frames}")
        errors += console_errors(opened(window.as_uri(), "--dump-dom", profile=tmp_path / "profile").stderr)
    assert not errors


def test_a_script_that_fails_would_be_noticed(tmp_path):
    page = tmp_path / "page.html"
    page.write_text("<!doctype html><title>x</title><script>missing()</script>")
    assert console_errors(opened(page.as_uri(), "--dump-dom", profile=tmp_path / "profile").stderr)


def test_the_search_finds_gradient_clipping_without_a_server(site, tmp_path):
    shown = opened(f"{(site / 'index.html').as_uri()}?q=gradient+clipping", "--dump-dom", profile=tmp_path / "profile")
    results = re.findall(r'<a href="([^"]+)" class="md-search-result__link"', shown.stdout)
    assert results, html.unescape(shown.stdout[-2000:])
    assert "clipping" in shown.stdout.lower()


@pytest.mark.parametrize(("name", "size"), [("wide", "1400,1000"), ("narrow", "390,844")])
def test_a_page_fits_its_screen(site, tmp_path, name, size):
    picture = tmp_path / f"{name}.png"
    opened(
        (site / "faster.html").as_uri(),
        f"--window-size={size}",
        f"--screenshot={picture}",
        profile=tmp_path / "profile",
    )
    assert picture.stat().st_size > 20_000
