from __future__ import annotations

from argparse import ArgumentParser

from pilotage.cli.script_arguments import keep_what_follows_dashes


def test_everything_after_two_dashes_belongs_to_the_script():
    parser = ArgumentParser()
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--steps")
    keep_what_follows_dashes(parser)
    found = parser.parse_args(["a.py", "--", "--steps", "3", "b"])
    assert (found.paths, found.steps, found.script_arguments) == (["a.py"], None, ["--steps", "3", "b"])
    assert parser.parse_args(["a.py"]).script_arguments == []
