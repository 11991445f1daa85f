"""The parity page is correct and up to date."""

from __future__ import annotations

import inspect
import operator
from collections import Counter
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import pilotage
import popdist.poptorch
import popdist.tensorflow
import poptorch
import poptorch.testing
from tools.parity.choices import MEMBERS
from tools.parity.option_meanings import OPTION_MEANINGS, Meaning
from tools.parity.page import PAGE, PARTS, counts, page
from tools.parity.rows import Row, Sort, Status, Table

TABLES = [table for tables in PARTS.values() for table in tables]
HERE = (Status.WORKS, Status.DIFFERS)


def label(table: Table) -> str:
    return table.title


@pytest.fixture(scope="module")
def subjects():
    """An instance of each kind of object with names: attributes of instances are not on the class."""
    dataset = torch.utils.data.TensorDataset(torch.ones(4))
    parameters = [nn.Parameter(torch.ones(1))]
    options = poptorch.Options()
    model = poptorch.inferenceModel(nn.Linear(1, 1))
    model.compile(torch.ones(1, 1))
    return {
        "poptorch": poptorch,
        "popdist": popdist,
        "Options": poptorch.Options(),
        "PoplarExecutor": model,
        "DataLoader": poptorch.DataLoader(options, dataset),
        "AsynchronousDataAccessor": poptorch.AsynchronousDataAccessor,
        "TensorLocationSettings": poptorch.TensorLocationSettings(),
        "MultiConv": poptorch.MultiConv(),
        "optim.Adam": poptorch.optim.Adam(parameters, lr=0.1),
        "VariableAttributes": poptorch.optim.VariableAttributes([], []),
    }


def found(subject: object, path: str) -> bool:
    """Whether a dotted name exists; errors are instantiated to find their attributes."""
    for name in path.split("."):
        if isinstance(subject, type) and issubclass(subject, poptorch.Error):
            subject = subject("text")
        if not hasattr(subject, name):
            return False
        subject = getattr(subject, name)
    return True


def sources() -> str:
    folders = [Path(package.__file__).parent for package in (poptorch, pilotage)]
    files = [file for folder in folders for file in folder.rglob("*.py")]
    return "\n".join(file.read_text() for file in files)


def is_there(table: Table, row: Row, subjects: dict[str, object]) -> bool:
    match table.sort:
        case Sort.ATTRIBUTES:
            return found(subjects[table.of], row.name)
        case Sort.ARGUMENTS:
            path, _, argument = row.name.removesuffix(")").partition("(")
            return argument in parameters_of(operator.attrgetter(path)(subjects[table.of]))
        case Sort.VARIABLES:
            return row.name in sources()
    raise AssertionError(table.sort)


def parameters_of(subject: Any) -> set[str]:
    """Names of arguments; a class whose metaclass handles calls shows them only on its constructor."""
    own = {*inspect.signature(subject).parameters}
    return own | {*inspect.signature(subject.__init__).parameters} if isinstance(subject, type) else own


@pytest.mark.parametrize("table", [t for t in TABLES if t.sort is not Sort.BEHAVIOURS], ids=label)
def test_names_that_work_exist_and_absent_ones_do_not(table, subjects):
    missing = [row.name for row in table.rows if row.status in HERE and not is_there(table, row, subjects)]
    present = [row.name for row in table.rows if row.status is Status.ABSENT and is_there(table, row, subjects)]
    assert (missing, present) == ([], [])


def test_every_difference_and_every_absent_name_has_a_remark():
    assert all(row.remark or row.status is not Status.DIFFERS for table in TABLES for row in table.rows)
    assert all(row.remark for table in TABLES for row in table.rows if row.status is Status.ABSENT)


def test_no_name_is_listed_twice():
    names = Counter((table.of, table.sort, row.name) for table in TABLES for row in table.rows)
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("name", MEMBERS)
def test_enums_have_the_members_that_the_page_gives_them(name):
    enum = getattr(poptorch, name)
    assert issubclass(enum, Enum)
    assert {member.name: str(member.value) for member in enum} == dict(
        pair.split("=") for pair in MEMBERS[name].split()
    )


def test_every_option_is_on_the_page():
    (table,) = [each for each in TABLES if each.title == "Options"]
    theirs = {option.path for option in OPTION_MEANINGS if option.meaning is not Meaning.OWN}
    assert {row.name for row in table.rows} == theirs


@pytest.mark.parametrize("name", [name for name in poptorch.__all__ if not name.startswith("__")])
def test_every_public_name_of_ours_is_on_the_page(name):
    assert f"`{name}" in page()


@pytest.mark.parametrize("name", [name for name in dir(poptorch.PoplarExecutor) if not name.startswith("_")])
def test_every_method_of_a_wrapped_model_is_on_the_page(name):
    (table,) = [each for each in TABLES if each.of == "PoplarExecutor"]
    assert name in {row.name for row in table.rows} | OURS


OURS = {
    "adopt",
    "bfloat16",
    "cpu",
    "cuda",
    "double",
    "eval",
    "float",
    "half",
    "hpu",
    "ipu",
    "to",
    "to_empty",
    "train",
    "type",
    "xpu",
}
"""Our own methods: those that would move or change the bare module."""


def test_the_counts_add_up():
    total = counts(TABLES)
    assert sum(total.values()) == sum(len(table.rows) for table in TABLES)
    assert f"| **all** | {' | '.join(f'**{total[status]}**' for status in Status)} |" in page()


def test_the_page_in_the_documents_is_up_to_date():
    written = PAGE.read_text() if PAGE.exists() else ""
    if written != page():
        PAGE.write_text(page())
    assert written == page(), f"{PAGE} was out of date and has been rewritten; check the changes and keep them"
