"""The command line of `pilotage cache`."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.cli.main import build_parser, main


@pytest.mark.parametrize(
    "arguments", [["--directory", "here", "--json", "check"], ["check", "--directory", "here", "--json"]]
)
def test_common_options_may_come_before_or_after_the_action(arguments):
    parsed = build_parser().parse_args(["cache", *arguments])
    assert (parsed.action, parsed.directory, parsed.json) == ("check", Path("here"), True)


def test_listing_is_the_default():
    parsed = build_parser().parse_args(["cache"])
    assert (parsed.action, parsed.directory, parsed.json) == ("list", None, False)


@pytest.mark.parametrize("age", ["30", "soon", "-1d", "1y"])
def test_an_age_needs_a_number_and_a_unit(capsys, age):
    with pytest.raises(SystemExit):
        main(["cache", "clear", f"--older-than={age}"])
    assert f"the age is '{age}'. Write a duration with its unit, such as 12h or 30d" in capsys.readouterr().err


def test_the_help_has_examples_and_names_the_limits(capsys):
    with pytest.raises(SystemExit):
        main(["cache", "--help"])
    printed = capsys.readouterr().out
    for words in ("pilotage cache check", "--older-than 30d", "PILOTAGE_CACHE_SIZE", "PILOTAGE_CACHE_AGE", "list"):
        assert words in printed
