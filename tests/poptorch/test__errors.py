import pytest

from pilotage import errors
from poptorch._errors import createPoptorchError, translated
from poptorch.poptorch_core import Error

ASSERTED = ("BatchDimensionError", "UnexpectedArgumentError")
TRANSLATED = [
    name
    for name in errors.__all__
    if name not in ASSERTED and not issubclass(getattr(errors, name), errors.OptionError | errors.DatasetError)
]


def test_an_error_of_the_python_layer_says_so():
    error = createPoptorchError("no such thing")
    assert type(error) is Error
    assert str(error) == "'poptorch_py_error': no such thing"
    assert (error.type, error.message, error.location) == ("poptorch_py_error", "no such thing", "")


@pytest.mark.parametrize("name", TRANSLATED)
def test_an_error_of_the_engine_becomes_one_of_poptorch(name):
    cause = getattr(errors, name)("what happened")
    with pytest.raises(Error, match=r"^what happened$") as caught, translated():
        raise cause
    assert caught.value.__cause__ is cause
    assert caught.value.message == "what happened"


def test_the_type_names_the_layer():
    with pytest.raises(Error) as caught, translated():
        raise errors.DeviceMemoryError("too large")
    assert caught.value.type == "pilotage_device_memory_error"


@pytest.mark.parametrize("name", ASSERTED)
def test_checks_that_poptorch_asserts_raise_assertion_errors(name):
    with pytest.raises(AssertionError, match=r"^what happened$"), translated():
        raise getattr(errors, name)("what happened")


@pytest.mark.parametrize("kept", [errors.OptionError("x"), errors.DatasetError("x"), KeyError("x"), Error("x")])
def test_other_errors_pass_through_unchanged(kept):
    with pytest.raises(type(kept)) as caught, translated():
        raise kept
    assert caught.value is kept


def test_errors_of_a_decorated_function_are_translated():
    @translated()
    def fail():
        raise errors.CaptureError("no graph")

    for _ in range(2):
        with pytest.raises(Error, match="no graph"):
            fail()
