"""Compiled code in program files."""

from __future__ import annotations

import json
import os

import pytest

from pilotage.compiler.cache import NativeCache, write_manifest
from pilotage.compiler.packed_code import PackedCode, install
from pilotage.compiler.tuning import Tuning
from pilotage.errors import ProgramFileError
from pilotage.options.choices import Tier
from pilotage.storage.fingerprint import Fingerprint

HERE = Fingerprint({"operations": "relu", "torch": "2.13"})


@pytest.fixture
def packed(tmp_path):
    cache = NativeCache(tmp_path / "from")
    with cache.building(HERE) as folder:
        (folder / "train").mkdir()
        (folder / "train" / "wrapper.py").write_text("call = None")
        write_manifest(folder, HERE, Tuning(tier=Tier.COMPILED))
    return PackedCode.of(cache.find(HERE))


@pytest.mark.parametrize("mask", [0o002, 0o022])
def test_code_is_installed_unchanged_whatever_the_umask(tmp_path, packed, mask):
    before = os.umask(mask)
    try:
        cache = NativeCache(tmp_path / "to")
        assert install(packed, cache, HERE)
        assert cache.find(HERE).files() == packed.files
    finally:
        os.umask(before)


def test_code_for_another_program_or_version_is_not_installed(tmp_path, packed):
    cache = NativeCache(tmp_path / "to")
    assert not install(packed, cache, Fingerprint({"operations": "tanh", "torch": "2.13"}))
    old = {"parts": dict(HERE.parts), "tuning": {"tier": "compiled"}, "digests": {}}
    assert not install(PackedCode({**packed.files, "manifest.json": json.dumps(old).encode()}), cache, HERE)
    assert list(cache.root.iterdir()) == []


def test_modified_code_is_refused(tmp_path, packed):
    cache = NativeCache(tmp_path / "to")
    with pytest.raises(ProgramFileError, match=r"train/wrapper.py is not what was written"):
        install(PackedCode({**packed.files, "train/wrapper.py": b"import os"}), cache, HERE)
    assert list(cache.root.iterdir()) == []
