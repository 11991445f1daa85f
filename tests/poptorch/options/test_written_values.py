"""Values of options as text: literals, names of PopTorch and torch, and nothing that runs code."""

from __future__ import annotations

import ast

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import poptorch
from poptorch.options.written_values import RefusedValueError, arguments_of, value_of_node, value_of_text

LITERALS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=3),
    ),
    max_leaves=8,
)


def read(text):
    return value_of_node(ast.parse(text, mode="eval").body)


@given(LITERALS)
def test_a_literal_is_read_as_python_reads_it(value):
    found = read(repr(value))
    assert (found, repr(found)) == (value, repr(value))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{1, 2}", {1, 2}),
        ("-3", -3),
        ("poptorch.OutputMode.All", poptorch.OutputMode.All),
        ("[poptorch.ReductionType.Sum]", [poptorch.ReductionType.Sum]),
        ("torch.float16", torch.float16),
    ],
)
def test_names_of_poptorch_and_torch_are_values(text, value):
    assert read(text) == value


def test_settings_are_made_by_their_constructors():
    found = read("poptorch.TensorLocationSettings().useOnChipStorage(False).minElementsForOffChip(3)")
    expected = poptorch.TensorLocationSettings().useOnChipStorage(False).minElementsForOffChip(3)
    assert vars(found) == vars(expected)
    stage = read('poptorch.Stage("a", "b").ipu(1)')
    assert vars(stage) == vars(poptorch.Stage("a", "b").ipu(1))


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "open('file')",
        "poptorch.Options()",
        "poptorch.OutputMode.Everything",
        "poptorch.enums.OutputMode.All",
        "torch.Tensor",
        "torch.float1234",
        "name",
        "1 + 1",
        "[each for each in ()]",
        "lambda: 0",
        "f'{1}'",
        "b'bytes'",
        "{**{}}",
        'poptorch.Stage("a").__class__("b")',
        'poptorch.Stage("a").nothing()',
        "poptorch.Stage(*['a'])",
    ],
)
def test_everything_else_is_refused(text):
    with pytest.raises((RefusedValueError, AttributeError)):
        read(text)


def test_a_refusal_says_what_is_accepted():
    with pytest.raises(
        RefusedValueError, match=r"name is not accepted\. Arguments must be literals, poptorch enums.*Stage"
    ):
        read("name")


def test_arguments_are_read_in_their_order_and_by_name():
    call = ast.parse("f(1, [2], torch.half, mode=poptorch.OutputMode.Sum)", mode="eval").body
    assert arguments_of(call.args, call.keywords) == ((1, [2], torch.half), {"mode": poptorch.OutputMode.Sum})
    with pytest.raises(RefusedValueError, match=r"\*\* is not accepted"):
        arguments_of([], ast.parse("f(**{})", mode="eval").body.keywords)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("OutputMode.All", poptorch.OutputMode.All),
        ("poptorch.OutputMode.All", poptorch.OutputMode.All),
        ("torch.half", torch.half),
        ("half", "half"),
        ("OutputMode.Nothing", "OutputMode.Nothing"),
        ("./a.b.c", "./a.b.c"),
    ],
)
def test_a_string_can_name_a_value(text, value):
    assert value_of_text(text) is value or value_of_text(text) == value
