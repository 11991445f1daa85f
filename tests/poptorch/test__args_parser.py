import pytest
import torch

from poptorch._args_parser import ICustomArgParser, registerCustomArgParser, registered_parsers
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
def test_a_registered_parser_takes_apart_and_puts_together():
    parser = registered_parsers()[Box]
    content = torch.rand(2)
    assert next(iter(parser.tensors(Box(content)))) is content
    assert parser.rebuild(Box(None), iter([content])).content is content


@pytest.mark.usefixtures("box_is_known")
def test_a_parser_is_replaced_by_the_next_and_removed_by_none():
    first = registered_parsers()[Box]
    registerCustomArgParser(Box, BoxParser())
    assert registered_parsers()[Box]._parser is not first._parser
    registerCustomArgParser(Box, None)
    registerCustomArgParser(Box, None)
    assert Box not in registered_parsers()


def test_something_else_than_a_parser_is_refused():
    with pytest.raises(Error, match="ICustomArgParser, not int"):
        registerCustomArgParser(Box, 3)


def test_a_parser_has_to_know_both_ways():
    with pytest.raises(TypeError, match="abstract"):
        ICustomArgParser()
