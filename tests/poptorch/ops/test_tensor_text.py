import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from poptorch.ops.tensor_text import TensorFormat, tensor_text


def text(values, **settings):
    return tensor_text(torch.as_tensor(values), TensorFormat(**settings))


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        ("auto", "{ 1.5000 20.2500}"),
        ("fixed", "{ 1.5000 20.2500}"),
        ("scientific", "{1.5000e+00 2.0250e+01}"),
        ("none", "{1.5 20.25}"),
    ],
)
def test_floats_are_written_in_four_styles(style, expected):
    assert text([1.5, 20.25], float_format=style) == expected


@pytest.mark.parametrize("values", [[1e-6, 1.0], [1.0, 1e9]])
def test_very_large_and_very_small_numbers_are_written_in_scientific_notation(values):
    assert "e" in text(values)
    assert "e" not in text(values, float_format="fixed")


def test_the_number_of_digits_can_be_set_or_left_out():
    assert text([1.25, 10.0], digits=2) == "{ 1.25 10.00}"
    assert text([1.25, 10.0], digits=0) == "{1.25 10}"


@pytest.mark.parametrize(
    ("style", "expected"), [("fixed", "1.4962566"), ("auto", "1.4962566"), ("scientific", "1.4962566e+00")]
)
def test_no_more_digits_are_written_than_a_number_of_32_bits_has(style, expected):
    assert text(torch.tensor(1.4962566), digits=8, float_format=style) == expected


def test_rows_have_no_separator_between_them_and_wrapped_lines_are_indented():
    form = {"separator": ", ", "open_bracket": "(", "close_bracket": ")"}
    assert text([[1, 2], [3, 4]], **form) == "(\n (1, 2)\n (3, 4)\n)"
    assert text([[100, 200, 300]], max_line_width=10) == "{\n {100 200\n   300}\n}"


def test_nan_and_infinity_are_written():
    assert text([float("nan"), float("inf"), 1.0]) == "{   nan    inf 1.0000}"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_every_float_type_is_written(dtype):
    assert text(torch.tensor([1.5], dtype=dtype)) == "{1.5000}"


def test_scalars_have_no_brackets():
    assert text(2.5) == "2.5000"
    assert text(7) == "7"


def test_an_empty_tensor_is_written_as_empty_brackets():
    assert text(torch.empty(0)) == "{}"


def test_three_dimensions_are_indented():
    assert text(torch.arange(8).reshape(2, 2, 2)) == ("{\n {\n  {0 1}\n  {2 3}\n }\n {\n  {4 5}\n  {6 7}\n }\n}")


def test_large_tensors_are_shortened_to_their_edges():
    assert text(range(1001)) == "{   0    1    2 ...  998  999 1000}"
    assert "..." not in text(range(1000))
    assert text(range(10), summarise_threshold=5, edge_items=1) == "{0 ... 9}"
    assert "..." not in text(range(2000), summarise_threshold=0)
    assert text(torch.arange(16).reshape(4, 4), summarise_threshold=5, edge_items=1) == (
        "{\n { 0 ...  3}\n ...\n {12 ... 15}\n}"
    )


@given(st.integers(1, 300), st.integers(20, 120))
def test_long_lines_are_wrapped(count, width):
    lines = text(range(count), max_line_width=width).splitlines()
    assert all(len(line) <= width + 1 for line in lines)
    assert [int(number) for number in re.findall(r"\d+", " ".join(lines))] == list(range(count))
    assert len(text(range(count), max_line_width=0).splitlines()) == 1


@given(st.lists(st.floats(-1000, 1000, width=32), min_size=1, max_size=30))
def test_written_text_can_be_read_back(values):
    written = text(torch.tensor(values), float_format="scientific", digits=8)
    read = [float(number) for number in written.strip("{}").split()]
    assert torch.allclose(torch.tensor(read), torch.tensor(values))
