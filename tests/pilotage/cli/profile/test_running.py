"""`pilotage profile` on the command line."""

import subprocess
import sys

import pytest

from pilotage.cli.main import main


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.py"], "The script 'missing.py' does not exist"),
        (["missing.py", "--json", "nowhere/profile.json"], "The folder 'nowhere' for profile.json does not exist"),
        (["missing.py", "--tensorboard", "file"], "is a file; --tensorboard needs a folder"),
    ],
)
def test_what_cannot_be_run_or_written_is_one_line(tmp_path, monkeypatch, capsys, arguments, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert main(["profile", *arguments]) == 1
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [["--steps", "0", "x.py"], ["--warmup", "-1", "x.py"], ["--looks", "many", "x.py"]]
)
def test_a_wrong_number_is_refused(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["profile", *arguments])
    assert ended.value.code == 2
    assert "is not a whole number" in capsys.readouterr().err


@pytest.mark.slow
def test_a_script_that_trains_nothing_too_little_or_fails_is_refused(tmp_path):
    def profiled(source: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "script.py").write_text(source)
        command = [sys.executable, "-m", "pilotage", "profile", "script.py", "--", "argument"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    nothing = profiled("import sys\nprint(sys.argv)\n")
    assert nothing.returncode == 1
    assert "['script.py', 'argument']" in nothing.stdout
    assert "ended without an update" in nothing.stderr
    source = "import torch\nw = torch.nn.Parameter(torch.ones(2))\no = torch.optim.SGD([w])\n"
    little = profiled(source + "w.sum().backward()\no.step()\nraise ValueError('out of data')\n")
    assert little.returncode == 1
    assert "failed after 1 updates: ValueError: out of data" in little.stderr
