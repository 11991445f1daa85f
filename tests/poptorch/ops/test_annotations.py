import pytest
import torch
from torch import nn

import poptorch
from poptorch.ops.annotations import present_attributes


def test_name_scopes_and_attributes_change_no_result(compiled):
    class Model(nn.Module):
        def forward(self, x):
            with poptorch.NameScope("outer"), poptorch.NameScope("inner"):
                x = x + 1
            with poptorch.Attribute(__outline={"layer": "embedding"}):
                return x * 2

    x = torch.randn(3)
    assert torch.equal(compiled(Model())(x), (x + 1) * 2)


def test_the_name_of_a_scope_must_be_a_string():
    with pytest.raises(AssertionError, match="must be a string"):
        poptorch.NameScope(3)


def test_attributes_nest_and_end_with_their_block():
    outer, inner = poptorch.Attribute(a={"x": 1, "y": 2}), poptorch.Attribute(a={"x": 3}, b={"z": 4})
    assert present_attributes() == {}
    with outer:
        assert present_attributes() == {"a": {"x": 1, "y": 2}}
        with inner, outer:
            assert present_attributes() == {"a": {"x": 1, "y": 2}, "b": {"z": 4}}
        with inner:
            assert present_attributes() == {"a": {"x": 3, "y": 2}, "b": {"z": 4}}
        assert present_attributes() == {"a": {"x": 1, "y": 2}}
    assert present_attributes() == {}


def test_attributes_end_with_an_error_too():
    with pytest.raises(KeyError), poptorch.Attribute(a={"x": 1}):
        raise KeyError
    assert present_attributes() == {}


def test_an_attribute_must_be_a_dictionary():
    with pytest.raises(AssertionError, match="must be a dictionary"):
        poptorch.Attribute(a=1)
