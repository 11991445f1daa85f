"""What mkdocs calls while it builds the site: pages from outside of docs/, generated pages, and links between them."""

from __future__ import annotations

import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.site.generated import generated_pages  # noqa: E402
from tools.site.links import ELSEWHERE, relinked  # noqa: E402
from tools.site.lists import spaced  # noqa: E402


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the documents of the repository that lie outside of docs/, and the pages that are generated."""
    for source, page in ELSEWHERE.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    for page, text in generated_pages().items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links at pages of the site, and write lists as Python's Markdown reads them."""
    del config, files
    return spaced(relinked(markdown, page.file.src_uri))
