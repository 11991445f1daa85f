"""What was found out about the C++ compiler is kept in the user's own cache."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import sys
from pathlib import Path
import torch
from pilotage.compiler.toolchain import known_toolchain
from pilotage.torch_private import cpu_vec_isa, inductor_codecache, inductor_config

with known_toolchain(Path(sys.argv[1])):
    chosen = cpu_vec_isa.pick_vec_isa()
    print(inductor_config.cpp.vec_isa_ok, inductor_codecache._HEADER_DIR, chosen or "none")
"""


def run(tmp_path, cache):
    changed = [f"XDG_CACHE_HOME={cache}", f"TORCHINDUCTOR_CACHE_DIR={tmp_path / 'inductor'}"]
    # All tests skip the trial of instructions, except these.
    command = [
        "env",
        "-u",
        "TORCHINDUCTOR_VEC_ISA_OK",
        *changed,
        sys.executable,
        "-c",
        SCRIPT,
        str(tmp_path / "scratch"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    is_known, headers, *chosen = done.stdout.split()
    return is_known, headers, chosen


@pytest.mark.long
def test_instructions_are_tried_once_and_headers_are_kept_in_the_cache(tmp_path):
    cache = tmp_path / "cache"
    first = run(tmp_path, cache)
    if first[2] == ["none"]:
        pytest.skip("Inductor knows no vector instructions of this processor")
    assert first[:2] == ("None", str(cache / "pilotage" / "toolchain" / "headers"))
    again = run(tmp_path, cache)
    assert again == ("True", *first[1:])
    assert (cache / "pilotage" / "toolchain").stat().st_mode & 0o077 == 0


@pytest.mark.long
def test_a_cache_that_others_can_write_to_is_not_used(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    is_known, headers, _ = run(tmp_path, shared)
    assert (is_known, headers) == ("None", str(tmp_path / "scratch" / "headers"))
    assert not any(shared.rglob("instructions-*"))
