from __future__ import annotations

import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.errors import InputError, MissingArgumentError, UnexpectedArgumentError
from pilotage.program.signature import CallSignature


def plain(x, y): ...


def with_defaults(x, y=2, z=None): ...


def with_keyword_only(x, *, scale, bias=0): ...


def with_rest(x, *rest): ...


def with_names(x, **named): ...


def with_everything(x, /, y=1, *rest, scale=2, **named): ...


FORWARDS = [plain, with_defaults, with_keyword_only, with_rest, with_names, with_everything]


def bind(forward, *args, **kwargs):
    return CallSignature.of(forward).bind(args, kwargs)


@pytest.mark.parametrize(
    ("forward", "args", "kwargs", "normal"),
    [
        (plain, (1, 2), {}, ((1, 2), {})),
        (plain, (1,), {"y": 2}, ((1, 2), {})),
        (plain, (), {"y": 2, "x": 1}, ((1, 2), {})),
        (with_defaults, (1,), {}, ((1, 2, None), {})),
        (with_defaults, (1,), {"z": 3}, ((1, 2, 3), {})),
        (with_keyword_only, (1,), {"scale": 3}, ((1,), {"scale": 3, "bias": 0})),
        (with_rest, (1, 2, 3), {}, ((1, 2, 3), {})),
        (with_names, (1,), {"mask": 2}, ((1,), {"mask": 2})),
        (with_everything, (1,), {"other": 5}, ((1, 1), {"scale": 2, "other": 5})),
        (with_everything, (1, 2, 3, 4), {"scale": 9}, ((1, 2, 3, 4), {"scale": 9})),
    ],
)
def test_arguments_are_bound_to_a_canonical_form(forward, args, kwargs, normal):
    assert bind(forward, *args, **kwargs) == normal


@given(
    st.sampled_from(FORWARDS),
    st.lists(st.integers(), max_size=5),
    st.dictionaries(st.sampled_from(["x", "y", "z", "scale", "bias", "other"]), st.integers(), max_size=4),
)
def test_exactly_the_calls_valid_in_python_are_accepted(forward, args, kwargs):
    signature = inspect.signature(forward)
    try:
        expected = signature.bind(*args, **kwargs)
    except TypeError:
        with pytest.raises(InputError):
            bind(forward, *args, **kwargs)
        return
    expected.apply_defaults()
    assert bind(forward, *args, **kwargs) == (expected.args, expected.kwargs)


def test_a_missing_argument_is_named():
    with pytest.raises(MissingArgumentError, match="Mandatory parameter y missing"):
        bind(plain, 1)
    with pytest.raises(MissingArgumentError, match="scale"):
        bind(with_keyword_only, 1)


def test_an_argument_too_many_is_counted():
    with pytest.raises(UnexpectedArgumentError, match=r"3 were given, forward takes 2 \(x, y\)"):
        bind(plain, 1, 2, 3)


def test_an_unknown_name_is_refused_with_those_that_are_known():
    with pytest.raises(UnexpectedArgumentError, match=r"'w'.*x, y"):
        bind(plain, 1, w=2)


def test_an_argument_passed_twice_is_named():
    with pytest.raises(UnexpectedArgumentError, match="y was passed twice"):
        bind(plain, 1, 2, y=3)
