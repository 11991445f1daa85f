import pytest

import poptorch
from pilotage.errors import OptionError


@pytest.fixture
def with_ipus(monkeypatch):
    monkeypatch.setenv("PILOTAGE_IPU_AVAILABLE", "1")


def test_without_the_variable_there_is_no_ipu_and_the_log_names_the_variable(caplog, monkeypatch):
    monkeypatch.delenv("PILOTAGE_IPU_AVAILABLE", raising=False)
    caplog.set_level("INFO", "pilotage")
    assert poptorch.ipuHardwareIsAvailable() is False
    assert "PILOTAGE_IPU_AVAILABLE=1" in caplog.text
    with pytest.raises(AssertionError, match="No IPU hardware available"):
        poptorch.ipuHardwareVersion()


def test_the_variable_makes_ipus_available_with_their_version(with_ipus, caplog):
    caplog.set_level("INFO", "pilotage")
    assert poptorch.ipuHardwareIsAvailable() is True
    assert poptorch.ipuHardwareIsAvailable(num_ipus=64) is True
    assert poptorch.ipuHardwareIsAvailable(65) is False
    assert poptorch.ipuHardwareVersion() == 2
    assert not caplog.messages


@pytest.mark.parametrize("variable", ["POPTORCH_IPU_MODEL", "POPTORCH_SMALL_IPU_MODEL"])
def test_the_ipu_model_does_not_count_as_hardware(with_ipus, monkeypatch, variable):
    monkeypatch.setenv(variable, "1")
    assert poptorch.ipuHardwareIsAvailable() is False


def test_any_other_value_is_refused(monkeypatch):
    monkeypatch.setenv("PILOTAGE_IPU_AVAILABLE", "yes")
    with pytest.raises(OptionError, match=r"PILOTAGE_IPU_AVAILABLE is 'yes'\. It must be 0 or 1\."):
        poptorch.ipuHardwareIsAvailable()
