from __future__ import annotations

from argparse import ArgumentParser

import pytest

from pilotage.cli.run.arguments import add_arguments
from pilotage.cli.run.configuration import export_configuration, with_imported
from pilotage.errors import OptionError


def parsed(*words: str):
    parser = ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(words)


def test_exported_options_are_imported_and_the_command_line_takes_precedence(tmp_path):
    file = str(tmp_path / "config")
    given = parsed(
        "--num-instances=4", "--num-replicas=8", "--numa-aware=0", "-vv", "--debug",
        "--host=a[0-1]", "--mpi-local-args=-x A=1",
        f"--export-config={file}", "ignored",
    )  # fmt: skip
    export_configuration(given)
    found = with_imported(parsed(f"--import-config={file}", "--num-replicas=16", "python3", "x.py"))
    assert (found.num_instances, found.num_replicas, found.numa_aware, found.verbose) == (4, 16, False, 2)
    assert (found.host, found.mpi_local_args, found.debug) == ("a[0-1]", "-x A=1", True)
    assert found.program == ["python3", "x.py"]


def test_a_file_is_not_overwritten_unasked(tmp_path):
    file = tmp_path / "config"
    file.write_text("mine")
    with pytest.raises(OptionError, match="--overwrite-config 1"):
        export_configuration(parsed(f"--export-config={file}"))
    assert file.read_text() == "mine"
    export_configuration(parsed(f"--export-config={file}", "--overwrite-config=1", "--num-instances=2"))
    assert file.read_text() == "num-instances = 2\n"


def test_a_file_that_cannot_be_written_is_reported_in_one_line(tmp_path):
    with pytest.raises(OptionError, match="cannot be written: No such file or directory"):
        export_configuration(parsed(f"--export-config={tmp_path / 'nowhere' / 'config'}"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# comment\n\nnum-instances 2", "Line 3 .*Write: name = value"),
        ("colour = red", "has the unknown option 'colour'"),
        ("import-config = x", "unknown option 'import-config'"),
        ("verbose = very", "Line 1 .*Give a number"),
        ("verbose = 99999999999", "Line 1 .*Give a number"),
        ("num-instances = two", "cannot be used.*num-instances"),
    ],
)
def test_an_invalid_file_is_refused_with_the_line(tmp_path, text, message):
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(OptionError, match=message):
        with_imported(parsed(f"--import-config={file}"))
    with pytest.raises(OptionError, match="cannot be read"):
        with_imported(parsed(f"--import-config={tmp_path / 'no'}"))
