"""The emulation's names, signatures and defaults compared with the vendor's."""

from __future__ import annotations

import inspect
import json
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from . import vendor_signatures as vendor

HERE = Path(__file__).parent


class MetricDumpFormat(Enum):
    json = "json"


def signature_of(text: str) -> list[tuple[str, str, str]]:
    """Names, kinds and defaults of the arguments in a text."""
    function = eval(f"lambda {text}: None", {"MetricDumpFormat": MetricDumpFormat})
    return described(inspect.signature(function))


def described(signature: inspect.Signature) -> list[tuple[str, str, str]]:
    return [
        (each.name, each.kind.name, "" if each.default is each.empty else repr(each.default))
        for each in signature.parameters.values()
    ]


@pytest.fixture(scope="module")
def found(tmp_path_factory, run_alone) -> dict[str, Any]:
    """What the emulation has: signatures by name, missing names, refusals and operations."""

    def program():
        import importlib
        import inspect
        import json
        import os
        import sys

        sys.path.insert(0, os.environ["TESTS"])
        import vendor_signatures as vendor

        import habana_frameworks.torch as ht

        ours, missing, refusals = {}, [], {}

        def resolve(name):
            """The object behind a dotted name, importing modules on the way."""
            place = ht
            path = ht.__name__
            for part in name.split("."):
                path += f".{part}"
                try:
                    place = getattr(place, part)
                except AttributeError:
                    place = importlib.import_module(path)
            return place

        for name in vendor.SIGNATURES:
            try:
                value = resolve(name)
            except (AttributeError, ImportError):
                missing.append(name)
                continue
            ours[name] = [
                (each.name, each.kind.name, "" if each.default is each.empty else repr(each.default))
                for each in inspect.signature(value).parameters.values()
            ]
        for module, names in vendor.NAMES.items():
            place = importlib.import_module(f"{ht.__name__}.{module}")
            missing += [f"{module}.{name}" for name in names.split() if not hasattr(place, name)]
        for module in vendor.REFUSED:
            try:
                importlib.import_module(f"{ht.__name__}.{module}")
            except ModuleNotFoundError as error:
                refusals[module] = str(error)
        import torch

        unknown = ("convert_from_uint4", "cast_to_fp8_just_in_time", "kv_reorder_")
        operations = [name for name in (*vendor.OPERATIONS.split(), *unknown) if hasattr(torch.ops.hpu, name)]
        print(json.dumps({"ours": ours, "missing": missing, "refusals": refusals, "operations": operations}))

    ran = run_alone(tmp_path_factory.mktemp("signatures"), program, TESTS=str(HERE))
    return json.loads(ran.stdout.splitlines()[-1])


pytestmark = pytest.mark.slow


def test_no_name_of_the_table_is_missing(found):
    assert found["missing"] == []


@pytest.mark.parametrize("name", vendor.SIGNATURES)
def test_arguments_have_the_vendors_names_order_and_defaults(found, name):
    theirs = signature_of(vendor.SIGNATURES[name])
    ours = [tuple(each) for each in found["ours"][name]]
    assert ours[: len(theirs)] == theirs
    more = ours[len(theirs) :]
    assert {each[0] for each in more} <= vendor.MORE_HERE.get(name, set())
    assert all(default for _, _, default in more)


def test_what_is_left_out_is_refused_with_a_reason(found):
    assert found["refusals"].keys() == vendor.REFUSED.keys()
    for module, reason in vendor.REFUSED.items():
        assert reason in found["refusals"][module]


def test_only_the_operations_of_the_table_exist(found):
    assert found["operations"] == vendor.OPERATIONS.split()
