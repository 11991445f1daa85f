from __future__ import annotations

import logging

import pytest

import popart
from popart import graphs


@pytest.mark.parametrize("name", graphs.__all__)
def test_building_and_running_graphs_raises_with_the_reason(name):
    with pytest.raises(popart.popart_exception, match=f"popart.{name} needs PopART"):
        getattr(popart, name)()


def test_unknown_names_say_what_there_is():
    with pytest.raises(AttributeError, match=r"popart\.ir is not available.*enums, versions, errors, getLogger"):
        _ = popart.ir


def test_the_version_is_that_of_the_names():
    assert popart.versionString().startswith(popart.__version__)
    assert popart.versionNumber() == (3, 4, 0)
    assert popart.packageHash() == "pilotage"


def test_loggers_take_the_names_of_levels_that_popart_has(caplog):
    logger = popart.getLogger("devicex")
    for name, level in {"WARN": logging.WARNING, "ERR": logging.ERROR, "INFO": logging.INFO, "OFF": 60}.items():
        logger.setLevel(name)
        assert logging.getLogger("popart:devicex").level == level
    logger.setLevel("INFO")
    logger.info("compiled %d", 3)
    logger.warn("slow")
    logger.err("lost")
    assert caplog.messages == ["compiled 3", "slow", "lost"]


def test_errors_are_caught_by_their_classes():
    assert issubclass(popart.popart_internal_exception, popart.popart_exception)
    assert issubclass(popart.poplar_exception, RuntimeError)
