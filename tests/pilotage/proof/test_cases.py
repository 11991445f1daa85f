"""The collection of scripts is as large and as varied as it must be."""

import runpy
from collections import Counter
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CASES = runpy.run_path(str(HERE / "cases.py"))
ACCIDENTS, SOUND, ENDINGS = CASES["accidents"](), CASES["sound_ports"](), CASES["endings"]()


def named(case):
    return case.name


@pytest.mark.parametrize("case", ACCIDENTS, ids=named)
def test_an_accident_names_what_is_found_in_the_port(case):
    assert case.expected
    assert {found.name for found in case.expected} <= CASES["NAMES"]
    assert not [found for found in case.expected if found.file.name == "before.py"]


@pytest.mark.parametrize("case", SOUND, ids=named)
def test_a_sound_port_has_an_original_and_no_finding(case):
    assert [path.name for path in case.scripts] == ["before.py", "after.py"]
    assert not case.expected


@pytest.mark.parametrize("case", [*ACCIDENTS, *SOUND], ids=named)
def test_scripts_compile_and_are_as_long_as_real_ones(case):
    for path in case.scripts:
        text = path.read_text()
        compile(text, path, "exec")
        assert 50 <= len(text.splitlines()) <= 200


def test_there_are_enough_of_them():
    assert len(ACCIDENTS) >= 40
    assert len(SOUND) >= 20
    counts = Counter(name for case in ACCIDENTS for name in {found.name for found in case.expected})
    assert not [name for name in CASES["NAMES"] if counts[name] < 2]
    assert len([case for case in ACCIDENTS if len({found.name for found in case.expected}) > 1]) >= 5


def test_names_and_lines_are_read_from_the_comments(tmp_path):
    folder = tmp_path / "lost"
    folder.mkdir()
    (folder / "after.py").write_text(
        '# prove: --steps 5 --after-command "poprun python {after}"\n'
        "model = wrap(net)  # finding: wrapper-lost, host-fallback\n"
        "model.eval()  # finding: eval-mode-in-training\n"
    )
    (case,) = CASES["_cases"](tmp_path)
    after = folder / "after.py"
    assert case.arguments == ("--steps", "5", "--after-command", f"poprun python {after}")
    assert [(found.name, found.file, found.line) for found in case.expected] == [
        ("wrapper-lost", after, 2),
        ("host-fallback", after, 2),
        ("eval-mode-in-training", after, 3),
    ]
    assert case.scripts == (after,)


def test_every_ending_is_there():
    assert {ending.word for ending in ENDINGS} == {
        "crashes",
        "exits",
        "forks",
        "hangs",
        "never-trains",
        "reads-input",
        "syntax-error",
    }
