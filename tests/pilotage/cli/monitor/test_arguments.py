import argparse

import pytest

from pilotage.cli.monitor.arguments import add_arguments


@pytest.fixture
def parse():
    parser = argparse.ArgumentParser(prog="monitor")
    add_arguments(parser)
    return lambda *words: parser.parse_args(words)


def test_watching_defaults_to_every_second(parse):
    assert parse().watch is None
    assert parse("--watch").watch == 1.0
    assert parse("--watch", "0.5").watch == 0.5


@pytest.mark.parametrize("interval", ["0", "-1", "nan", "inf", "soon", "1e9"])
def test_an_invalid_interval_is_refused(parse, interval, capsys):
    with pytest.raises(SystemExit):
        parse(f"--watch={interval}")
    assert "--watch" in capsys.readouterr().err


@pytest.mark.parametrize("words", [("--json", "--csv-output"), ("--sensors", "--no-card-info")])
def test_conflicting_options_are_refused(parse, words, capsys):
    with pytest.raises(SystemExit):
        parse(*words)
    assert "not allowed with" in capsys.readouterr().err


def test_gc_monitors_options_are_accepted(parse):
    parsed = parse("-s", "--csv-output", "--no-headers", "--all-partitions")
    assert (parsed.sensors, parsed.csv_output, parsed.no_headers) == (True, True, True)
