import json

import pytest

from pilotage.errors import ProgramFileError
from pilotage.program.signature import CallSignature
from pilotage.storage.signature_text import signature_from_data, signature_to_data


def plain(x, y): ...


def with_defaults(x, y=2, z=None): ...


def with_keyword_only(x, *, scale, bias=0): ...


def with_rest(x, *rest): ...


def with_names(x, **named): ...


def with_everything(x, /, y=1, *rest, scale=2, **named): ...


CALLS = [
    (plain, (1, 2), {}),
    (with_defaults, (1, 2), {}),
    (with_keyword_only, (1,), {"scale": 4}),
    (with_rest, (1, 2), {}),
    (with_names, (1,), {}),
    (with_everything, (1, 2), {}),
]


@pytest.mark.parametrize(("forward", "args", "kwargs"), CALLS)
def test_a_signature_written_as_data_binds_as_before(forward, args, kwargs):
    signature = CallSignature.of(forward)
    again = signature_from_data(json.loads(json.dumps(signature_to_data(signature))))
    assert again.bind(args, kwargs) == signature.bind(args, kwargs)
    assert again.names == signature.names


@pytest.mark.parametrize(
    "data",
    [
        5,
        [["x", "POSITIONAL_ONLY", False]],
        [["x", "SOMEWHERE", False, None]],
        [["x = 1", "POSITIONAL_ONLY", False, None]],
        [["x", "POSITIONAL_ONLY", True, {"a": 1}]],
        [["x", "POSITIONAL_ONLY", "yes", None]],
    ],
)
def test_data_that_is_not_a_signature_is_refused(data):
    with pytest.raises(ProgramFileError):
        signature_from_data(data)
