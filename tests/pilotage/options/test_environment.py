from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.errors import OptionError
from pilotage.options import environment


@pytest.mark.parametrize(("ask", "name"), [(environment.backend, "BACKEND"), (environment.tier, "TIER")])
def test_an_empty_variable_says_nothing(monkeypatch, ask, name):
    assert ask() is None
    monkeypatch.setenv(f"PILOTAGE_{name}", "")
    assert ask() is None
    monkeypatch.setenv(f"PILOTAGE_{name}", "something")
    assert ask() == "something"


def test_the_level_of_the_log(monkeypatch):
    assert environment.log_level() == "INFO"
    monkeypatch.setenv("PILOTAGE_LOG_LEVEL", "warning")
    assert environment.log_level() == "WARNING"
    monkeypatch.setenv("PILOTAGE_LOG_LEVEL", "loud")
    with pytest.raises(OptionError, match=r"PILOTAGE_LOG_LEVEL is 'LOUD'. Choose one of: DEBUG, INFO, WARNING, ERROR"):
        environment.log_level()


def test_data_lies_where_the_variable_says(monkeypatch):
    monkeypatch.delenv("PILOTAGE_DATA", raising=False)
    assert environment.data_directory() is None
    monkeypatch.setenv("PILOTAGE_DATA", "~/data")
    assert environment.data_directory() == Path.home() / "data"


def test_the_cache_follows_the_xdg_specification(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert environment.cache_directory() == tmp_path / "pilotage"
    for ignored in ("relative", ""):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert environment.cache_directory() == Path.home() / ".cache" / "pilotage"


def test_the_compiler_is_the_one_of_the_variable(monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    assert environment.cpp_compiler() == "g++"
    monkeypatch.setenv("CXX", "clang++")
    assert environment.cpp_compiler() == "clang++"
