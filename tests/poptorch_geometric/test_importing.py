from __future__ import annotations

import importlib

import pytest

import poptorch
from poptorch._args_parser import registered_parsers


@pytest.mark.parametrize("module", ["poptorch_geometric", "poptorch_geometric.types", "poptorch_geometric.dataloader"])
def test_importing_it_says_that_it_is_out_of_scope_and_what_to_do(module):
    with pytest.raises(ModuleNotFoundError, match=r"out of scope for now.*registerCustomArgParser"):
        importlib.import_module(module)


def test_its_parsers_are_left_out_without_a_failure():
    before = dict(registered_parsers())
    poptorch.registerGeometricCustomArgParsers()
    assert registered_parsers() == before
