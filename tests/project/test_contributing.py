"""The recipes for contributors name files that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
TASKS = (
    "an optimizer",
    "a device",
    "a device model for predictions",
    "an option",
    "an operator",
    "a graph pass",
    "a launcher",
    "a torch version",
    "a command",
    "a rule of the port",
    "a data set",
    "a compute mode of CosmicTagger",
)


def test_every_path_exists():
    paths = re.findall(r"`((?:src|dropins|tests|tools|docs|examples|benchmarks|\.ci)/[^`\s]*)`", TEXT)
    assert len(paths) > 50
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_table_of_the_architecture_has_a_row_for_each_recipe():
    recipes = re.findall(r"^### (.*)$", TEXT, re.MULTILINE)
    (table,) = re.findall(r"^\| to add \|.*?\n\n", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| (an? [^|]*?) \|", table, re.MULTILINE)
    assert recipes == list(TASKS)
    assert rows == [task.removesuffix(" of CosmicTagger") for task in TASKS]


@pytest.mark.parametrize("task", TASKS)
def test_a_recipe_has_at_most_five_steps(task):
    (recipe,) = re.findall(rf"^### {task}\n(.*?)(?=^##|\Z)", TEXT, re.MULTILINE | re.DOTALL)
    steps = re.findall(r"^(\d)\. ", recipe, re.MULTILINE)
    assert steps == [str(number) for number in range(1, len(steps) + 1)]
    assert 3 <= len(steps) <= 5


@pytest.mark.parametrize(
    ("name", "path"),
    re.findall(r"`([A-Z_]{4,}|[A-Z][a-z]+[A-Za-z]+|backends\(\))`[^`\n]*in `([^`]+\.py)`", TEXT),
)
def test_names_in_recipes_are_in_their_files(name, path):
    assert name.removesuffix("()") in (ROOT / path).read_text()
