"""How the compiling process is started; its life is tested with the worker."""

from __future__ import annotations

import os

from pilotage.compiler.process import _environment


def test_the_compiler_works_on_a_build_server_as_elsewhere(monkeypatch, tmp_path):
    monkeypatch.setenv("CI", "true")
    found = _environment(tmp_path, 3)
    # Inductor would take it for torch's own tests.
    assert not found["CI"]
    assert found["TORCHINDUCTOR_COMPILE_THREADS"] == "3"
    assert found["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path / "inductor")
    assert os.environ["CI"] == "true"
