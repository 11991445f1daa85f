"""Code for another program, or code that others could have written, is not used and not removed through links."""

from __future__ import annotations

import os

import pytest

from pilotage.compiler.cache import NativeCache, write_manifest
from pilotage.compiler.tuning import Tuning
from pilotage.errors import ProgramFileError
from pilotage.options.choices import Tier
from pilotage.storage.fingerprint import Fingerprint

RELU, TANH = (Fingerprint({"operations": name, "torch": "2.13", "device": "cpu"}) for name in ("relu", "tanh"))
LIBRARY = "train/0.so"


@pytest.fixture
def cache(tmp_path):
    cache = NativeCache(tmp_path / "cache")
    for fingerprint in (RELU, TANH):
        with cache.building(fingerprint) as folder:
            (folder / "train").mkdir()
            (folder / LIBRARY).write_bytes(fingerprint.parts["operations"].encode())
            write_manifest(folder, fingerprint, Tuning(tier=Tier.COMPILED))
    return cache


def refused(cache, fingerprint, words):
    """Look for a program whose entry is refused; the error names the folder, and the entry is removed."""
    with pytest.raises(ProgramFileError, match=words) as raised:
        cache.find(fingerprint)
    assert str(cache.folder(fingerprint)) in str(raised.value)
    assert cache.find(fingerprint) is None


def swap(one, other):
    between = one.with_name("between")
    one.rename(between)
    other.rename(one)
    between.rename(other)


def test_swapped_entries_are_refused(cache):
    swap(cache.folder(RELU), cache.folder(TANH))
    refused(cache, RELU, "compiled for something else, with another operations")
    refused(cache, TANH, "compiled for something else, with another operations")


def test_an_entry_for_fewer_parts_is_refused(cache):
    wider = Fingerprint({**RELU.parts, "precision": "highest"})
    cache.folder(RELU).rename(cache.folder(wider))
    refused(cache, wider, "another precision")


@pytest.mark.timeout(20)
@pytest.mark.parametrize("place", ["manifest.json", LIBRARY, "train", "train/more.so", ""])
def test_a_fifo_anywhere_in_the_cache_does_not_block(cache, place):
    path = cache.folder(RELU) / place
    if path.is_dir():
        swap(path, _other(path))
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    assert "compared with" in cache.why_missing(TANH) or place == ""
    refused(cache, RELU, "regular file|not a directory")


def _other(path):
    """A FIFO to put in the place of a directory."""
    other = path.with_name("fifo")
    os.mkfifo(other)
    return other


@pytest.mark.parametrize("place", ["", "train", LIBRARY, "manifest.json"])
@pytest.mark.parametrize("rights", [0o777, 0o770])
def test_files_that_others_can_write_to_are_refused(cache, place, rights):
    (cache.folder(RELU) / place).chmod(rights)
    refused(cache, RELU, r"not used: .*can be written to by others \(mode 07")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("place", ["", "train", LIBRARY, "manifest.json"])
def test_files_of_another_user_are_refused(cache, place):
    os.chown(cache.folder(RELU) / place, 12345, 12345)
    refused(cache, RELU, r"belongs to another user \(uid 12345\)")


@pytest.mark.parametrize("place", ["", "train", LIBRARY, "manifest.json"])
def test_a_link_is_refused_and_its_target_is_kept(cache, tmp_path, place):
    path = cache.folder(RELU) / place
    target = tmp_path / "elsewhere"
    path.rename(target)
    path.symlink_to(target)
    before = sorted(each.name for each in target.rglob("*"))
    refused(cache, RELU, "is a symbolic link")
    assert target.exists()
    assert sorted(each.name for each in target.rglob("*")) == before


def test_a_changed_manifest_is_noticed_even_if_all_files_are_right(cache):
    manifest = cache.folder(RELU) / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"channels_last": false', '"channels_last": true'))
    refused(cache, RELU, "damaged: manifest.json is not what was written")


@pytest.mark.parametrize("mask", [0o000, 0o002, 0o077])
def test_written_files_are_private_whatever_the_umask(tmp_path, mask):
    before = os.umask(mask)
    try:
        cache = NativeCache(tmp_path / "users" / "cache")
        with cache.building(RELU) as folder:
            (folder / "train").mkdir()
            (folder / LIBRARY).write_bytes(b"relu")
            write_manifest(folder, RELU, Tuning(tier=Tier.COMPILED))
        assert cache.find(RELU) is not None
    finally:
        os.umask(before)
