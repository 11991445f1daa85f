import sys

import pytest
import torch

from pilotage.program.structure import flatten
from poptorch._args_parser import (
    ICustomArgParser,
    custom_arg_parsers,
    registerCustomArgParser,
    registered_parsers,
    registerGeometricCustomArgParsers,
)
from poptorch.poptorch_core import Error


class Box:
    def __init__(self, content):
        self.content = content


class BoxParser(ICustomArgParser):
    def yieldTensors(self, struct):  # noqa: N802
        yield struct.content

    def reconstruct(self, original_structure, tensor_iterator):
        return Box(next(tensor_iterator))


@pytest.fixture
def box_is_known():
    registerCustomArgParser(Box, BoxParser())
    yield
    registerCustomArgParser(Box, None)


@pytest.mark.usefixtures("box_is_known")
def test_a_registered_parser_flattens_and_rebuilds():
    parser = registered_parsers()[Box]
    content = torch.rand(2)
    assert next(iter(parser.tensors(Box(content)))) is content
    assert parser.rebuild(Box(None), iter([content])).content is content


@pytest.mark.usefixtures("box_is_known")
def test_a_parser_can_be_replaced_and_removed():
    first = registered_parsers()[Box]
    registerCustomArgParser(Box, BoxParser())
    assert registered_parsers()[Box]._parser is not first._parser
    registerCustomArgParser(Box, None)
    registerCustomArgParser(Box, None)
    assert Box not in registered_parsers()


def test_a_parser_of_another_type_is_refused():
    with pytest.raises(Error, match="ICustomArgParser, not int"):
        registerCustomArgParser(Box, 3)


def test_a_parser_must_implement_both_methods():
    with pytest.raises(TypeError, match="abstract"):
        ICustomArgParser()


@pytest.mark.usefixtures("box_is_known")
def test_a_model_takes_and_returns_objects_with_a_parser(compiled, tier):
    class Model(torch.nn.Module):
        def forward(self, box, others):
            return [Box(box.content + 1), {"a": Box(others[0].content * 2)}]

    run = compiled(Model(), tier=tier)
    for x in (torch.ones(2), torch.arange(2.0)):
        first, rest = run(Box(x), (Box(x),))
        assert type(first) is type(rest["a"]) is Box
        assert torch.equal(first.content, x + 1)
        assert torch.equal(rest["a"].content, x * 2)


def test_a_parser_registered_after_wrapping_is_found(compiled):
    class Model(torch.nn.Module):
        def forward(self, box):
            return box.content + 1

    run = compiled(Model())
    registerCustomArgParser(Box, BoxParser())
    try:
        assert torch.equal(run(Box(torch.ones(2))), torch.full((2,), 2.0))
    finally:
        registerCustomArgParser(Box, None)


@pytest.mark.usefixtures("box_is_known")
def test_parsers_are_found_by_exact_type_then_by_base_class():
    class Crate(Box):
        pass

    class Special(Crate):
        pass

    class CrateParser(BoxParser):
        pass

    registerCustomArgParser(Crate, CrateParser())
    try:
        of_crate = flatten(Crate(torch.ones(1)), registered_parsers())[1].parser._parser
        of_special = flatten(Special(torch.ones(1)), registered_parsers())[1].parser._parser
    finally:
        registerCustomArgParser(Crate, None)
    assert type(of_crate) is CrateParser
    assert type(of_special) is BoxParser


def test_without_pytorch_geometric_its_parsers_are_left_out(caplog, monkeypatch):
    monkeypatch.setitem(sys.modules, "poptorch_geometric.types", None)
    before = dict(custom_arg_parsers)
    with caplog.at_level("DEBUG", "poptorch::python"):
        registerGeometricCustomArgParsers()
    assert custom_arg_parsers == before
    assert "poptorch_geometric" in caplog.text


def test_poptorch_geometric_registers_its_parsers_if_installed(tmp_path, monkeypatch):
    package = tmp_path / "poptorch_geometric"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "types.py").write_text("calls = []\ndef registerCustomArgParsers():\n    calls.append(1)\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [each for each in sys.modules if each.split(".")[0] == "poptorch_geometric"]:
        monkeypatch.delitem(sys.modules, name)
    registerGeometricCustomArgParsers()
    types = sys.modules.pop("poptorch_geometric.types")
    sys.modules.pop("poptorch_geometric")
    assert types.calls == [1]
