from __future__ import annotations

import ast
import os
import re
from datetime import timedelta
from pathlib import Path

import pytest

import pilotage
from pilotage.errors import OptionError
from pilotage.options import environment


@pytest.mark.parametrize(("ask", "name"), [(environment.backend, "BACKEND"), (environment.tier, "TIER")])
def test_an_empty_variable_counts_as_unset(monkeypatch, ask, name):
    assert ask() is None
    monkeypatch.setenv(f"PILOTAGE_{name}", "")
    assert ask() is None
    monkeypatch.setenv(f"PILOTAGE_{name}", "something")
    assert ask() == "something"


def test_the_log_level_is_read(monkeypatch):
    assert environment.log_level() == "INFO"
    monkeypatch.setenv("PILOTAGE_LOG_LEVEL", "warning")
    assert environment.log_level() == "WARNING"
    monkeypatch.setenv("PILOTAGE_LOG_LEVEL", "loud")
    with pytest.raises(OptionError, match=r"PILOTAGE_LOG_LEVEL is 'LOUD'. Choose one of: DEBUG, INFO, WARNING, ERROR"):
        environment.log_level()


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


def test_processes_announce_themselves_in_the_users_own_directories(monkeypatch):
    user = os.geteuid()
    monkeypatch.delenv("PILOTAGE_RUN_DIR", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/mine")
    usual = (Path(f"/run/user/{user}/pilotage"), Path(f"/dev/shm/pilotage-{user}"), Path(f"/tmp/pilotage-{user}"))
    assert environment.run_directories() == (Path("/run/mine/pilotage"), *usual)
    # A batch job, a login and an ignored relative path all lead to the same directories.
    for elsewhere in (f"/run/user/{user}", "relative", ""):
        monkeypatch.setenv("XDG_RUNTIME_DIR", elsewhere)
        assert environment.run_directories() == usual


def test_the_run_directory_can_be_chosen_and_switched_off(monkeypatch, tmp_path):
    monkeypatch.setenv("PILOTAGE_RUN_DIR", str(tmp_path))
    assert environment.run_directories() == (tmp_path,)
    monkeypatch.setenv("PILOTAGE_RUN_DIR", "OFF")
    assert environment.run_directories() == ()


def test_the_limits_of_the_cache_are_read(monkeypatch):
    assert environment.cache_size() == 10 * 2**30
    assert environment.cache_age() == 90 * 86400
    for name, ask in (("SIZE", environment.cache_size), ("AGE", environment.cache_age)):
        monkeypatch.setenv(f"PILOTAGE_CACHE_{name}", "off")
        assert ask() is None
        monkeypatch.setenv(f"PILOTAGE_CACHE_{name}", "many")
        with pytest.raises(OptionError, match=rf"PILOTAGE_CACHE_{name} is 'many'. Write a .*, or off for no limit\."):
            ask()


def test_silent_instances_get_two_minutes_unless_the_variable_differs(monkeypatch):
    monkeypatch.delenv("PILOTAGE_EXCHANGE_TIMEOUT", raising=False)
    assert pilotage.exchange_timeout() == timedelta(seconds=120)
    monkeypatch.setenv("PILOTAGE_EXCHANGE_TIMEOUT", "30")
    assert pilotage.exchange_timeout() == timedelta(seconds=30)


@pytest.mark.parametrize("given", ["soon", "0"])
def test_an_invalid_exchange_timeout_is_refused(monkeypatch, given):
    monkeypatch.setenv("PILOTAGE_EXCHANGE_TIMEOUT", given)
    with pytest.raises(OptionError, match="PILOTAGE_EXCHANGE_TIMEOUT"):
        pilotage.exchange_timeout()


def test_every_variable_in_the_core_is_in_the_table():
    source = Path(environment.__file__).parents[1]
    found = {name for path in source.rglob("*.py") for name in re.findall(r"PILOTAGE_[A-Z_]*[A-Z]", path.read_text())}
    assert found == {variable.name for variable in environment.VARIABLES}
    assert len(found) == len(environment.VARIABLES)


@pytest.mark.parametrize("variable", environment.VARIABLES, ids=lambda variable: variable.name)
def test_every_variable_is_described_in_one_sentence(variable):
    assert variable.type
    assert re.fullmatch(r"[A-Z].*\.", variable.meaning)


def reads_variables(path: Path) -> bool:
    """Whether a module uses `os.environ`; rules of the port only write it into scripts."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return any(isinstance(node, ast.Attribute) and ast.unparse(node) == "os.environ" for node in nodes)


def test_only_the_environment_module_and_launchers_read_variables():
    source = Path(environment.__file__).parents[1]
    readers = {path.relative_to(source).parts[0] for path in source.rglob("*.py") if reads_variables(path)}
    assert readers == {"options", "distributed"}
