import json
from argparse import Namespace

import pytest

from pilotage.cli.main import build_parser, main
from pilotage.cli.prove.running import request_of
from pilotage.errors import ProofError


def parsed(*words: str) -> Namespace:
    return build_parser().parse_args(["prove", *words])


@pytest.fixture
def scripts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("before.py", "after.py"):
        (tmp_path / name).write_text("")
    return tmp_path


def test_two_scripts_are_an_original_and_its_port_with_the_same_arguments(scripts):
    request = request_of(parsed("before.py", "after.py", "--steps", "7", "--", "--lr", "0.1", "--", "x"))
    assert request.before[1:] == ("before.py", "--lr", "0.1", "--", "x")
    assert request.after[1:] == ("after.py", "--lr", "0.1", "--", "x")
    assert request.steps == 7


def test_one_script_is_audited(scripts):
    request = request_of(parsed("after.py", "--", "--lr", "0.1"))
    assert request.before is None
    assert request.after[1:] == ("after.py", "--lr", "0.1")


def test_commands_take_the_place_of_scripts(scripts):
    request = request_of(parsed("before.py", "after.py", "--after-command", "mpirun -n 2 python 'after.py'"))
    assert request.before[1:] == ("before.py",)
    assert request.after[-4:] == ("-n", "2", "python", "after.py")
    assert request_of(parsed("--before-command", "a b", "--after-command", "c d")).before == ("a", "b")
    assert request_of(parsed("before.py", "--after-command", "c d")).before[1:] == ("before.py",)
    assert request_of(parsed("after.py", "--before-command", "a b")).after[1:] == ("after.py",)
    assert request_of(parsed("after.py", "--after-command", "mpirun after.py")).before is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Give two scripts, BEFORE and AFTER, or one to audit"),
        (["before.py", "lost.py"], "The script 'lost.py' does not exist"),
        (["before.py", "after.py", "before.py"], "at most two scripts"),
        (["--after-command", "'x"], "cannot be read"),
        (["--after-command", " "], "empty"),
        (["before.py", "--json", "lost/result.json"], "The folder 'lost' for result.json does not exist"),
        (["before.py", "--json", "."], "'.' is a folder"),
        (["before.py", "--picture", "."], "'.' is a folder"),
        (["before.py", "--picture", "proof.doc"], "A picture cannot be saved as '.doc'"),
        (["--repeat", "lost.json"], "lost.json cannot be read"),
        (["after.py", "--repeat", "after.py"], "give no others"),
        (["--repeat", "before.py"], "before.py is not a result"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_status_2(scripts, capsys, words, message):
    assert main(["prove", *words]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert not printed.out


@pytest.mark.parametrize("words", [["--steps", "0"], ["--steps", "x"], ["--timeout", "-1"], ["--seed", "-1"], ["--lr"]])
def test_a_wrong_option_is_status_2(scripts, capsys, words):
    with pytest.raises(SystemExit) as stopped:
        main(["prove", "before.py", "after.py", *words])
    assert stopped.value.code == 2


def test_a_result_file_is_repeated_as_it_was_requested(scripts):
    wanted = {"before": ["python", "before.py"], "after": ["python", "after.py"], "steps": 9, "seed": 3}
    (scripts / "result.json").write_text(json.dumps({"request": {**wanted, "timeout": 5.0, "align": True}}))
    request = request_of(parsed("--repeat", "result.json"))
    assert (request.before, request.after) == (("python", "before.py"), ("python", "after.py"))
    assert (request.steps, request.seed, request.align) == (9, 3, True)


def test_a_picture_needs_matplotlib_before_anything_runs(scripts, capsys, monkeypatch):
    monkeypatch.setattr("pilotage.proof.picture.can_draw", lambda: False)
    assert main(["prove", "before.py", "after.py", "--picture", "x.png"]) == 2
    assert "A picture needs matplotlib" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_to_is_noticed_before_anything_runs(scripts, capsys, monkeypatch):
    monkeypatch.setattr("os.access", lambda *given: False)
    assert main(["prove", "before.py", "after.py", "--json", "result.json"]) == 2
    assert "result.json cannot be written to the folder '.'" in capsys.readouterr().err


def test_a_command_line_that_argparse_would_take_for_scripts_is_kept_apart():
    assert parsed("a.py", "--", "b.py").scripts == ["a.py"]
    assert parsed("a.py", "--", "b.py").script_arguments == ["b.py"]


def test_an_error_names_what_to_do():
    with pytest.raises(ProofError, match="--help"):
        request_of(parsed())
