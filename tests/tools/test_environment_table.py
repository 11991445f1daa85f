"""The page of environment variables is complete and up to date."""

import re

from pilotage.options.environment import VARIABLES
from tools.environment_table import PAGE, READER, ROOT, STANDARD, described, page, texts

VARIABLE = re.compile(r"(PILOTAGE|POPTORCH|POPART|POPLAR|POPDIST|PVTI|PT_HPU|GPU_MIGRATION)_[A-Z_]*[A-Z]")
READING = re.compile(r"\bos\.(environ|getenv)\b")
OTHER_READERS = (
    "src/pilotage/distributed/",
    "src/cosmictagger/",
    "dropins/src/habana_frameworks/",
    "dropins/src/pilotage_dropins/",
    "dropins/src/poptorch/",
)
"""Other readers of such variables. By a house rule the core has only one."""


def sources():
    return [path for folder in ("src", "dropins/src") for path in sorted((ROOT / folder).rglob("*.py"))]


def test_the_page_is_up_to_date():
    assert PAGE.read_text() == page(), "run: python -m tools.environment_table"


def test_every_variable_in_the_sources_is_described():
    named = {text for path in sources() for text in texts(path) if VARIABLE.fullmatch(text)}
    assert len(named) > 30
    assert named - described() - set(STANDARD) == set()


def test_every_variable_on_the_page_is_in_the_sources():
    folders = [*sources(), *(ROOT / "examples").rglob("*.py")]
    assert described() - {text for path in folders for text in texts(path)} == set()


def test_only_known_files_read_these_variables():
    readers = {
        str(path.relative_to(ROOT))
        for path in sources()
        if path != READER and READING.search(path.read_text()) and any(map(VARIABLE.fullmatch, texts(path)))
    }
    assert [path for path in sorted(readers) if not path.startswith(OTHER_READERS)] == []


def test_every_variable_of_the_engine_has_a_row():
    for each in VARIABLES:
        assert f"| `{each.name}` | {each.type} | {each.default} | {each.meaning}" in page().replace("<wbr>", "")
        assert each.meaning[0].isupper()
        assert each.meaning.endswith(".")


def test_the_standard_variables_are_those_that_the_reader_reads():
    read = {text for text in texts(READER) if re.fullmatch("[A-Z]+(_[A-Z]+)*", text)} - {
        each.name for each in VARIABLES
    }
    levels = {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}
    assert read - levels == set(STANDARD)
