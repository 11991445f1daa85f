"""Completion in shells, asked of the shells themselves."""

import shutil
import subprocess

import pytest

from pilotage.cli.completion.running import SHELLS, grammars
from pilotage.cli.main import COMMANDS, main

ASK_BASH = """
eval "$SCRIPT"
COMP_WORDS=({line}); COMP_CWORD={place}
_{function}
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture(scope="module")
def scripts():
    return {shell: write(grammars()) for shell, write in SHELLS.items()}


def bash(script, *words):
    """What bash offers for the last word."""
    line = " ".join(f"'{word}'" for word in words)
    program = ASK_BASH.format(line=line, place=len(words) - 1, function=words[0].replace("-", "_"))
    ran = subprocess.run(
        ["bash", "--norc", "-c", program], capture_output=True, text=True, check=True, env={"SCRIPT": script}
    )
    return set(ran.stdout.split())


def test_bash_offers_every_command(scripts):
    assert bash(scripts["bash"], "pilotage", "") >= {command.name for command in COMMANDS}
    assert bash(scripts["bash"], "pilotage", "mon") == {"monitor"}


def test_bash_offers_the_options_of_a_command_and_their_values(scripts):
    assert {"--to", "--output", "--in-place"} <= bash(scripts["bash"], "pilotage", "port", "--")
    assert bash(scripts["bash"], "pilotage", "port", "--to", "") == {"poptorch", "popdist", "hpu", "pilotage"}
    assert bash(scripts["bash"], "pilotage", "cache", "cl") == {"clear"}
    assert "--older-than" in bash(scripts["bash"], "pilotage", "cache", "clear", "--")
    assert bash(scripts["bash"], "poprun", "--remote-shell", "s") == {"ssh", "srun"}
    assert bash(scripts["bash"], "poprun", "--numa-aware", "") == {"0", "1"}
    assert "--json" in bash(scripts["bash"], "gc-monitor", "--")
    assert bash(scripts["bash"], "hl-smi", "--f") == {"--fw-versions"}


def test_bash_offers_files_where_a_script_is_expected(scripts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    assert bash(scripts["bash"], "pilotage", "scan", "tr") == {"train.py"}
    assert bash(scripts["bash"], "pilotage", "port", "--report", "tr") == {"train.py"}
    assert bash(scripts["bash"], "poprun", "--num-instances", "") == set()


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_zsh_takes_the_script(scripts):
    ran = subprocess.run(["zsh", "-f", "-c", scripts["zsh"]], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
def test_fish_offers_commands_options_and_values(scripts):
    ask = "; ".join(f"complete -C '{line}'" for line in ("pilotage mon", "pilotage port --to pop", "poprun --num-inst"))
    ran = subprocess.run(
        ["fish", "--no-config", "-c", scripts["fish"] + ask], capture_output=True, text=True, check=True
    )
    offered = [line.split("\t")[0] for line in ran.stdout.splitlines()]
    assert offered == ["monitor", "popdist", "poptorch", "--num-instances"]


def test_the_command_prints_the_script_and_says_how_to_use_it(scripts, capsys):
    assert main(["completion", "bash"]) == 0
    assert capsys.readouterr().out == scripts["bash"]
    with pytest.raises(SystemExit):
        main(["completion", "--help"])
    assert 'eval "$(pilotage completion bash)"' in capsys.readouterr().out
