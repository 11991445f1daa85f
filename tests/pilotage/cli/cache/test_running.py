"""`pilotage cache` from its command line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from pilotage.cache.store import Store
from pilotage.cli.main import main


def ran(capsys, *arguments):
    status = main(["cache", *map(str, arguments)])
    printed = capsys.readouterr()
    return status, printed.out + printed.err


def states(capsys, root, action="list"):
    _, printed = ran(capsys, action, "--json", "--directory", root)
    (directory,) = json.loads(printed)["directories"]
    return {item["name"]: item["state"] for item in directory["items"]}


def test_without_an_action_it_lists_the_entries_and_their_directory(capsys, root, add, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.setenv("PILOTAGE_CACHE_DIR", str(root))
    monkeypatch.setenv("XDG_CACHE_HOME", str(root / "nowhere"))
    name = add("Classifier", age=3)
    status, printed = ran(capsys)
    assert status == 0
    assert f"Compiled programs: {root}" in printed
    assert "1 item, " in printed
    assert " of at most 10 GiB" in printed
    (row,) = (line for line in printed.splitlines() if "Classifier" in line)
    for text in (name[:12], "training", "cpu with AVX2", "2.13.0", "3 d ago", "ready"):
        assert text in row
    assert f"Emulated Gaudi card: {root}/gaudi" in printed
    assert ran(capsys, "list") == (status, printed)


def test_a_cache_that_is_off_or_empty_says_so_and_nothing_is_created(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    status, printed = ran(capsys)
    assert status == 0
    assert "PILOTAGE_CACHE_DIR is off" in printed
    assert "empty" in printed
    assert list(tmp_path.iterdir()) == []


def test_checking_reads_every_file_and_names_what_is_wrong(capsys, root, all_sorts):
    assert states(capsys, root) == {name: "ready" if s == "damaged" else s for s, name in all_sorts.items()}
    assert states(capsys, root, "check") == {name: state for state, name in all_sorts.items()}
    status, printed = ran(capsys, "check", "--directory", root)
    assert status == 1
    assert f"{all_sorts['damaged'][:12]} is damaged: train/0.so is not what was written." in printed
    assert f"{all_sorts['foreign'][:12]} is foreign: can be written to by others (mode 0777)." in printed
    assert ran(capsys, "list", "--directory", root)[0] == 0


def test_an_intact_cache_passes_the_check(capsys, root, add):
    add("Classifier")
    status, printed = ran(capsys, "check", "--directory", root)
    assert status == 0
    assert "Every file matches its digest." in printed


def test_clearing_removes_useless_items_and_shows_what_was_freed(capsys, root, all_sorts):
    status, printed = ran(capsys, "clear", "--dry-run", "--directory", root)
    assert status == 0
    assert printed.count("would remove") == 4
    assert len(states(capsys, root)) == 5
    status, printed = ran(capsys, "clear", "--directory", root)
    assert status == 0
    assert printed.count("removed") == 4
    assert "KiB freed; 1 item kept (--all removes everything that is not in use)." in printed
    assert states(capsys, root, "check") == {all_sorts["ready"]: "ready"}
    assert {path.name for path in root.iterdir()} == {all_sorts["ready"]}


def test_clearing_works_by_age_by_name_or_for_everything(capsys, root, add):
    names = [add(f"Program{age}", age=age) for age in (1, 10, 40, 100)]
    # The limit of 90 days counts as well.
    assert "1 item" not in ran(capsys, "clear", "--directory", root)[1].splitlines()[0]
    assert set(states(capsys, root)) == set(names[:3])
    ran(capsys, "clear", "--older-than", "30d", "--directory", root)
    assert set(states(capsys, root)) == set(names[:2])
    ran(capsys, "clear", names[0][:8], "--directory", root)
    assert set(states(capsys, root)) == {names[1]}
    ran(capsys, "clear", "--all", "--directory", root)
    assert list(root.iterdir()) == []


def test_an_entry_in_use_is_shown_and_kept(capsys, root, add):
    name = add("Running")
    found = Store(root).find(name, {"operations": "Running", "device": "cpu with AVX2", "torch": "2.13.0"})
    assert states(capsys, root) == {name: "in use"}
    status, printed = ran(capsys, "clear", "--all", "--directory", root)
    assert status == 1
    assert "kept" in printed
    assert "in use by a running program" in printed
    assert found.read("train/0.so") == bytes(1000)


def test_folders_of_other_tools_are_never_cleared_unless_named(capsys, root, add):
    add("Classifier")
    (root / ("c" * 32)).mkdir()
    (root / "data").mkdir()
    ran(capsys, "clear", "--all", "--directory", root)
    assert {path.name for path in root.iterdir()} == {"c" * 32, "data"}
    ran(capsys, "clear", "cccc", "--directory", root)
    assert {path.name for path in root.iterdir()} == {"data"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["clear", "zzz"], "No entry named 'zzz'"),
        (["clear", ""], "matches 2 entries"),
        (["clear", "zzz", "--all"], "but not both"),
    ],
)
def test_a_failed_choice_of_backend_is_explained(capsys, root, add, arguments, words):
    add("One")
    add("Two")
    status, printed = ran(capsys, *arguments, "--directory", root)
    assert status == 1
    assert words in printed
    assert len(states(capsys, root)) == 2


def test_a_missing_directory_is_named(capsys, tmp_path):
    status, printed = ran(capsys, "--directory", tmp_path / "none")
    assert (status, printed) == (1, f"pilotage cache: No such directory: {tmp_path / 'none'}.\n")


def test_a_directory_that_others_can_write_to_is_a_problem(capsys, root, add):
    add("Classifier")
    root.chmod(0o777)
    status, printed = ran(capsys, "check", "--directory", root)
    assert status == 1
    assert "can be written to by others" in printed
    assert ran(capsys, "clear", "--all", "--directory", root)[0] == 1
    assert len(list(root.iterdir())) == 1


def test_the_command_imports_no_torch(root, add):
    add("Classifier")
    program = (
        "import sys; sys.modules['torch'] = None; sys.modules['rich'] = None; from pilotage.cli.main import main; "
    )
    program += f"sys.exit(main(['cache', 'check', '--directory', {str(root)!r}]))"
    answered = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (answered.returncode, answered.stderr) == (0, "")
    assert "Classifier" in answered.stdout
