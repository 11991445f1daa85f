"""The command that builds the emulated device ahead of time; test_library.py builds it for real."""

from habana_frameworks.build import main


def test_without_a_compiler_the_command_fails_with_instructions(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setenv("PILOTAGE_CACHE_DIR", "")
    assert main(["--directory", str(tmp_path / "image")]) == 1
    assert "'no-such-compiler' was not found. Install g++" in capsys.readouterr().err
