"""Files and folders that a port cannot read or write: one clear line each, and nothing is overwritten."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from pilotage.cli.main import main

CORPUS = Path(__file__).parent / "corpus"
SCRIPT = (CORPUS / "quickstart.py").read_text()


@pytest.fixture
def port(capsys):
    """Run `pilotage port`; its status, and the lines on both outputs."""

    def run(*arguments, to="hpu"):
        status = main(["port", *map(str, arguments), "--to", to])
        printed = capsys.readouterr()
        return status, printed.out.splitlines(), printed.err.splitlines()

    return run


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def test_a_syntax_error_is_one_line_with_its_place(port, tmp_path):
    path = tmp_path / "broken.py"
    path.write_text("import torch\n\nfor x in loader\n    pass\n")
    status, printed, (line,) = port(path)
    assert (status, printed) == (2, [])
    assert line.startswith(f"pilotage port: {path}:3:16: this is not valid Python: ")


@pytest.mark.parametrize("content", [bytes(range(256)), b"\x7fELF\0\0\0\0", b"# coding: martian\n", b"x = '\xff'\n"])
def test_a_binary_file_is_one_line(port, tmp_path, content):
    path = tmp_path / "model.py"
    path.write_bytes(content)
    status, printed, (line,) = port(path)
    assert (status, printed) == (2, [])
    assert line.startswith(f"pilotage port: {path}: ")


def test_a_loop_of_links_is_one_line_and_is_not_followed_in_folders(port, tmp_path, script):
    loop = tmp_path / "loop.py"
    loop.symlink_to(loop)
    status, _, (line,) = port(loop)
    assert status == 2
    assert line.startswith(f"pilotage port: {loop}: ")
    loop.unlink()
    (tmp_path / "again").symlink_to(tmp_path)
    status, _, errors = port(tmp_path)
    assert (status, errors[-1].split(";")[0]) == (0, "1 of 1 files change")


def test_a_missing_file_and_a_folder_without_scripts_have_different_messages(port, tmp_path):
    status, _, (line,) = port(tmp_path / "absent.py")
    assert (status, "absent.py" in line) == (2, True)
    status, printed, errors = port(tmp_path)
    assert len(errors) == 1
    assert printed == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_one_line(port, script, tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    status, _, errors = port(script, "-o", locked / "train.py")
    assert (status, len(errors)) == (2, 1)


def test_a_target_that_cannot_be_written_is_one_line(port, script, tmp_path):
    (tmp_path / "file").touch()
    status, printed, errors = port(script, "-o", tmp_path / "file" / "train.py")
    assert (status, printed) == (2, [])
    assert [each for each in errors if each.startswith("pilotage port: ")] == errors[-1:]


def test_nothing_is_overwritten_without_in_place(port, script, tmp_path):
    other = tmp_path / "other.py"
    other.write_text("mine\n")
    assert port(script)[0] == 0
    status, _, errors = port(script, "-o", other)
    assert status == 2
    assert "other.py" in errors[-1]
    assert (script.read_text(), other.read_text()) == (SCRIPT, "mine\n")


def test_in_place_replaces_the_file_as_a_whole_and_keeps_its_permissions(port, script):
    script.chmod(0o755)
    with script.open() as held:
        assert port(script, "--in-place")[0] == 0
        # An open handle still reads the complete old file: it was replaced, not written into.
        assert held.read() == SCRIPT
    assert "htcore.mark_step()" in script.read_text()
    assert script.stat().st_mode & 0o777 == 0o755
    assert [path.name for path in script.parent.iterdir()] == ["train.py"]
    ported = script.read_text()
    assert port(script, "--in-place")[0] == 0
    assert script.read_text() == ported


@pytest.mark.parametrize(
    ("encoding", "newline"),
    [
        ("latin-1", "\n"),
        ("latin-1", "\r\n"),
        *((encoding, newline) for encoding in ("utf-8", "utf-8-sig") for newline in ("\n", "\r\n", "\r")),
    ],
)
def test_encoding_byte_order_mark_and_line_ends_stay(port, tmp_path, encoding, newline):
    head = "# -*- coding: latin-1 -*-\n# café\n" if encoding == "latin-1" else "# café\n"
    path = tmp_path / "train.py"
    text = head + SCRIPT
    path.write_bytes(text.replace("\n", newline).encode(encoding))
    assert port(path, "--in-place")[0] == 0
    written = path.read_bytes().decode(encoding)
    assert written.startswith(head.replace("\n", newline))
    assert "htcore.mark_step()" in written
    assert newline == "\n" or "\n" not in written.replace(newline, "")
    assert compile(path.read_bytes(), path, "exec") is not None


@pytest.mark.parametrize("text", ["", "\n", "# only a comment", '"""Only this."""\n', "\f\n"])
def test_a_file_without_statements_is_left_as_it_is(port, tmp_path, text):
    path = tmp_path / "empty.py"
    path.write_text(text)
    assert port(path, "--in-place", to="poptorch")[0] == 0
    assert path.read_text() == text


def test_an_expression_that_is_nested_too_deeply_is_one_line(port, tmp_path):
    path = tmp_path / "deep.py"
    path.write_text("x = " + "+".join(["1"] * 20_000) + "\n")
    status, printed, (line,) = port(path)
    assert (status, printed) == (2, [])
    assert line.startswith(f"pilotage port: {path}: ")


def test_a_package_with_one_unreadable_file_is_left_as_it_is(port, script, tmp_path):
    (tmp_path / "broken.py").write_text("def (:\n")
    status, _, (line,) = port(tmp_path, "--in-place")
    assert (status, "broken.py:1:5" in line) == (2, True)
    assert script.read_text() == SCRIPT


def test_a_package_of_a_thousand_lines_is_ported_in_time(port, tmp_path):
    scripts = ["mnist_example.py", "imagenet_example.py", "vae.py", "super_resolution.py", "siamese.py", "nano_gpt.py"]
    scripts += ["trainer_class.py", "quickstart.py", "transfer_learning.py", "hf_no_trainer.py", "ddp_torchrun.py"]
    for name in scripts:
        (tmp_path / name).write_text((CORPUS / name).read_text())
    assert sum(len(path.read_text().splitlines()) for path in tmp_path.iterdir()) >= 1000
    for target in ("poptorch", "popdist", "hpu", "pilotage"):
        began = time.process_time()
        assert port(tmp_path, to=target)[0] in (0, 1)
        assert time.process_time() - began < 5.0


@pytest.mark.parametrize("target", ["hpu", "poptorch"])
def test_a_file_of_fifty_thousand_lines_is_one_line(port, tmp_path, target):
    path = tmp_path / "generated.py"
    functions = "".join(
        f"def f{number}(x):\n    y = x.cuda()\n    return y + {number}\n\n\n" for number in range(10_000)
    )
    path.write_text("import torch\n\n\n" + functions)
    status, printed, (line,) = port(path, to=target)
    assert (status, printed) == (2, [])
    assert line.startswith(f"pilotage port: {path} has 50,003 lines; files of up to 20,000 are read.")
