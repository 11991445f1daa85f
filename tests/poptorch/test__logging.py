import io
import logging
import re
import sys

import pytest

from poptorch import _logging
from poptorch._logging import limited_repeats, logger, setLogLevel, setPopartLogLevel


@pytest.fixture(autouse=True)
def _as_imported():
    engine = logging.getLogger("pilotage")
    before = (list(engine.handlers), engine.level)
    yield
    engine.handlers[:], level = before
    engine.setLevel(level)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("POPTORCH_LOG_LEVEL", "POPTORCH_LOG_DEST", "POPART_LOG_LEVEL"):
            patch.delenv(name, raising=False)
        _logging._configure()


def test_a_line_has_time_logger_level_and_text(capsys):
    logger.warning("there are %d", 3)
    line = capsys.readouterr().err
    assert re.fullmatch(r"\[\d\d:\d\d:\d\d\.\d\d\d\] \[poptorch::python\] \[warning\] there are 3\n", line)


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (logging.DEBUG, "debug"),
        (logging.INFO, "info"),
        (logging.ERROR, "error"),
        (logging.CRITICAL, "critical"),
        (5, "trace"),
    ],
)
def test_the_level_is_in_lower_case(number, name, capsys):
    setLogLevel("TRACE")
    logger.log(number, "text")
    assert f"[{name}] text" in capsys.readouterr().err


def test_a_traceback_follows_the_line(capsys):
    try:
        raise KeyError("lost")
    except KeyError:
        logger.exception("it failed")
    shown = capsys.readouterr().err
    assert "[error] it failed\nTraceback" in shown
    assert shown.endswith("KeyError: 'lost'\n")


def test_colours_appear_only_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    plain, terminal = io.StringIO(), Terminal()
    for stream in (plain, terminal):
        monkeypatch.setattr(sys, "stderr", stream)
        logger.warning("text")
    assert "\033[" not in plain.getvalue()
    assert "\033[33;1mwarning\033[0m" in terminal.getvalue()


def test_other_handlers_get_the_messages_too(caplog):
    logger.warning("text")
    assert caplog.messages == ["text"]


@pytest.mark.parametrize(
    ("level", "number"),
    [
        ("TRACE", 5),
        ("DEBUG", 10),
        ("INFO", 20),
        ("WARN", 30),
        ("ERR", 40),
        ("OFF", 60),
        ("TRACE_ALL", 1),
        ("DEBUG_IR", 8),
        (0, 5),
        (1, 10),
        (2, 20),
        (3, 30),
        (4, 40),
        (6, 60),
    ],
)
def test_levels_can_be_names_or_numbers(level, number):
    setLogLevel(level)
    assert logger.level == number
    assert _logging.backend_logger.level == number


@pytest.mark.parametrize("level", [5, 7, -1, True])
def test_unknown_level_numbers_are_refused(level):
    with pytest.raises(ValueError, match="Invalid log level integer"):
        setLogLevel(level)


def test_unknown_level_names_are_refused():
    expected = "^Unknown log level: wibble. Valid values are DEBUG, ERR, INFO, OFF, TRACE and WARN$"
    with pytest.raises(ValueError, match=expected):
        setLogLevel("wibble")


def test_nothing_is_logged_when_off(capsys):
    setLogLevel("OFF")
    logger.critical("text")
    assert capsys.readouterr().err == ""


def test_the_level_of_the_engine_must_be_a_name(capsys):
    logging.getLogger("pilotage").handlers.clear()
    for _ in range(2):
        setPopartLogLevel("INFO")
    logging.getLogger("pilotage.backends").info("chosen")
    [line] = capsys.readouterr().err.splitlines()
    assert line.endswith("[pilotage.backends] [info] chosen")
    for level in ("wibble", 3):
        with pytest.raises(ValueError, match="Level must be one of"):
            setPopartLogLevel(level)


def test_the_environment_sets_the_level(monkeypatch, capsys):
    monkeypatch.setenv("POPTORCH_LOG_LEVEL", "INFO")
    _logging._configure()
    logger.info("once")
    assert capsys.readouterr().err.count("once") == 1


def test_warnings_are_shown_unless_the_environment_says_otherwise(monkeypatch, capsys):
    monkeypatch.delenv("POPTORCH_LOG_LEVEL", raising=False)
    _logging._configure()
    logger.info("quiet")
    logger.warning("loud")
    shown = capsys.readouterr().err
    assert "loud" in shown
    assert "quiet" not in shown


def test_a_wrong_level_in_the_environment_is_refused(monkeypatch):
    monkeypatch.setenv("POPTORCH_LOG_LEVEL", "wibble")
    with pytest.raises(ValueError, match="Unknown log level: wibble"):
        _logging._configure()


def test_the_environment_sets_the_level_of_the_engine(monkeypatch):
    monkeypatch.setenv("POPART_LOG_LEVEL", "ERR")
    _logging._configure()
    assert logging.getLogger("pilotage").level == logging.ERROR


def test_the_backend_writes_where_the_environment_says(monkeypatch, capsys, tmp_path):
    file = tmp_path / "backend.log"
    for destination in ("stdout", str(file), ""):
        monkeypatch.setenv("POPTORCH_LOG_DEST", destination)
        _logging._configure()
        _logging.backend_logger.warning("to %s", destination or "stderr")
    shown = capsys.readouterr()
    assert "[warning] to stdout" in shown.out
    assert f"[poptorch::backend] [warning] to {file}" in file.read_text()
    assert [line.partition("[warning] ")[2] for line in shown.err.splitlines()] == ["to stderr"]


def test_a_repeated_message_is_hidden_after_its_limit(capsys):
    with limited_repeats(2):
        for _ in range(6):
            logger.warning("same %s", "text")
            logger.warning("other")
    lines = capsys.readouterr().err.splitlines()
    assert sum("same text" in line for line in lines) == 2
    assert sum("other" in line for line in lines) == 2
    assert sum("maxRepeatLogs" in line for line in lines) == 2
    assert len(lines) == 6


def test_the_count_of_repeats_ends_with_its_block(capsys):
    for _ in range(3):
        with limited_repeats(1):
            logger.warning("same")
        logger.warning("same")
    assert capsys.readouterr().err.count("same") == 6
