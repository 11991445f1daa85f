import pytest

from poptorch.options import Options


def test_tracing_is_deprecated(caplog):
    options = Options()
    assert options.Jit.traceModel(False) is options.Jit
    assert "deprecated" in caplog.text


def test_tracing_is_refused(caplog):
    with pytest.raises(ValueError, match="no longer"):
        Options().Jit.traceModel(True)
    assert "deprecated" in caplog.text
