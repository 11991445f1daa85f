from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from examples.datasets.fashion_mnist import CLASSES, GENERATED, load
from examples.datasets.fashion_mnist.files import FILES
from examples.datasets.fashion_mnist.loading import boxed, gather, standard_sources
from examples.datasets.fashion_mnist.sources import DEBIAN_DIRECTORY, DebianPackage, Directory, Website
from pilotage.errors import DatasetError, OptionError

pytestmark = pytest.mark.slow


def test_the_sources_are_in_the_documented_order(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PILOTAGE_DATA", str(tmp_path / "mine"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cache = tmp_path / "cache" / "pilotage" / "fashion-mnist"
    mine, cached, debian, website, package = standard_sources()
    assert mine == Directory(tmp_path / "mine")
    assert isinstance(cached, Directory)
    assert cached.path == cache
    assert debian == Directory(DEBIAN_DIRECTORY)
    assert website == Website(cache)
    assert package == DebianPackage(cache)


def test_the_variable_may_name_a_folder_below_home(monkeypatch) -> None:
    monkeypatch.setenv("PILOTAGE_DATA", "~/data")
    assert standard_sources()[0] == Directory(Path.home() / "data")


def test_without_the_variable_the_cache_below_home_comes_first(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("PILOTAGE_DATA", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    first = standard_sources()[0]
    assert isinstance(first, Directory)
    assert first.path == tmp_path / ".cache" / "pilotage" / "fashion-mnist"


def test_each_failed_source_gives_a_line_and_the_next_is_tried(miniature, tmp_path: Path) -> None:
    good = Directory(miniature.write_to(tmp_path / "good"))
    lines: list[str] = []
    contents, origin = gather(
        miniature.files, [Directory(tmp_path / "a"), Directory(tmp_path / "b"), good], lines.append
    )
    assert contents == miniature.contents
    assert origin == good.name
    assert len(lines) == 3
    assert "a: no such directory" in lines[0]
    assert "b: no such directory" in lines[1]
    assert f"2 of 2 files come from {good.name}" in lines[2]


def test_files_of_several_sources_complete_each_other(miniature, tmp_path: Path) -> None:
    damaged, whole = (miniature.write_to(tmp_path / name) for name in ("damaged", "whole"))
    (damaged / "images.gz").write_bytes(b"cut")
    (whole / "labels.gz").unlink()
    lines: list[str] = []
    contents, origin = gather(miniature.files, [Directory(damaged), Directory(whole)], lines.append)
    assert contents == miniature.contents
    assert origin == f"{damaged} and {whole}"
    assert "images.gz: cut or corrupt" in lines[0]
    assert (damaged / "images.gz").read_bytes() == b"cut"


def test_an_intact_first_source_is_enough(miniature, tmp_path: Path) -> None:
    class Never:
        name = "never"

        def fetch(self, wanted: object) -> None:
            raise AssertionError("asked although nothing is missing")

    good = Directory(miniature.write_to(tmp_path))
    contents, _ = gather(miniature.files, [good, Never()], pytest.fail)  # type: ignore[list-item]
    assert contents == miniature.contents


def test_without_any_source_garments_are_generated_with_a_warning(tmp_path: Path, capsys) -> None:
    splits = load(limit=20, sources=[Directory(tmp_path / "missing")])
    assert splits.generated
    assert len(splits.train) == len(splits.test) == 20
    told = capsys.readouterr()
    assert not told.out
    assert "missing: no such directory" in told.err
    assert told.err.count("╔") == 1
    assert "NOT Fashion-MNIST" in told.err


def test_generated_garments_by_name_come_without_a_warning(capsys) -> None:
    splits = load(GENERATED, limit=7)
    assert splits.generated
    assert len(splits.train) == 7
    assert capsys.readouterr().err == ""


def test_a_missing_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="missing is not a directory"):
        load(tmp_path / "missing")


def test_a_directory_without_the_data_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="holds no file of Fashion-MNIST"):
        load(tmp_path)


def test_a_named_directory_never_gives_generated_garments(tmp_path: Path) -> None:
    for file in FILES:
        (tmp_path / file.name).write_bytes(b"cut")
    lines: list[str] = []
    with pytest.raises(DatasetError, match="has an intact"):
        load(tmp_path, sources=[], say=lines.append)
    assert len(lines) == len(FILES)


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(OptionError, match="limit is 0"):
        load(GENERATED, limit=0)


def test_a_box_is_drawn_with_straight_sides() -> None:
    assert len({len(line) for line in boxed("one\nlonger line\n\nlast").splitlines()}) == 1


def test_the_real_data_is_complete(real_directory: Path) -> None:
    splits = load(real_directory, sources=[], say=pytest.fail)
    assert not splits.generated
    assert splits.origin == str(real_directory)
    assert splits.train.images.shape == (60_000, 28, 28)
    assert splits.test.images.shape == (10_000, 28, 28)
    for split in (splits.train, splits.test):
        assert np.array_equal(np.bincount(split.labels), np.full(len(CLASSES), len(split) // 10))


def test_the_limit_takes_the_first_pictures(real_directory: Path) -> None:
    whole = load(real_directory, sources=[])
    part = load(real_directory, limit=100, sources=[])
    assert np.array_equal(part.train.images, whole.train.images[:100])
    assert np.array_equal(part.test.labels, whole.test.labels[:100])
