from __future__ import annotations

import functools
import gzip
import http.server
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from examples.datasets.fashion_mnist.sources import DEBIAN_PACKAGE, DebianPackage, Directory, Website

pytestmark = pytest.mark.slow


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def serve() -> Iterator[Callable[[Path], str]]:
    servers = []

    def start(directory: Path) -> str:
        handler = functools.partial(QuietHandler, directory=str(directory))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}/"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("below", ["", "fashion-mnist", "FashionMNIST/raw"])
def test_a_directory_gives_its_files(miniature, tmp_path: Path, compressed: bool, below: str) -> None:
    miniature.write_to(tmp_path / below, compressed=compressed)
    found = Directory(tmp_path).fetch(miniature.files)
    assert found.contents == miniature.contents
    assert not found.complaints


def test_a_missing_or_empty_directory_is_reported_in_one_line(miniature, tmp_path: Path) -> None:
    assert Directory(tmp_path).fetch(miniature.files).complaints == [f"{tmp_path}: none of the files is here."]
    missing = tmp_path / "missing"
    assert Directory(missing).fetch(miniature.files).complaints == [f"{missing}: no such directory."]


def test_a_damaged_file_is_named_and_not_changed(miniature, tmp_path: Path) -> None:
    miniature.write_to(tmp_path)
    damaged = tmp_path / "images.gz"
    damaged.write_bytes(damaged.read_bytes()[:-9])
    before = damaged.read_bytes()
    found = Directory(tmp_path).fetch(miniature.files)
    assert list(found.contents) == ["labels"]
    assert len(found.complaints) == 1
    assert str(damaged) in found.complaints[0]
    assert "cut or corrupt" in found.complaints[0]
    assert damaged.read_bytes() == before


def test_an_intact_plain_file_replaces_a_damaged_compressed_one(miniature, tmp_path: Path) -> None:
    miniature.write_to(tmp_path)
    miniature.write_to(tmp_path, compressed=False)
    (tmp_path / "images.gz").write_bytes(b"\x1f\x8bnonsense")
    assert Directory(tmp_path).fetch(miniature.files).contents == miniature.contents


def test_a_website_fills_the_cache(miniature, tmp_path: Path, serve) -> None:
    url = serve(miniature.write_to(tmp_path / "site"))
    cache = tmp_path / "cache"
    found = Website(cache, url).fetch(miniature.files)
    assert found.contents == miniature.contents
    assert not found.complaints
    assert sorted(os.listdir(cache)) == ["images.gz", "labels.gz"]
    assert Directory(cache).fetch(miniature.files).contents == miniature.contents


def test_a_damaged_download_never_reaches_the_cache(miniature, tmp_path: Path, serve) -> None:
    site = miniature.write_to(tmp_path / "site")
    (site / "labels.gz").write_bytes(gzip.compress(b"something else"))
    cache = tmp_path / "cache"
    found = Website(cache, serve(site)).fetch(miniature.files)
    assert list(found.contents) == ["images"]
    assert os.listdir(cache) == ["images.gz"]
    assert len(found.complaints) == 1
    assert "labels.gz: cut or corrupt" in found.complaints[0]


def test_a_server_that_fails_is_asked_only_once(miniature, tmp_path: Path, serve) -> None:
    found = Website(tmp_path / "cache", serve(tmp_path)).fetch(miniature.files)
    assert not found.contents
    assert len(found.complaints) == 1
    assert "the server answers 404" in found.complaints[0]


def test_an_unreachable_server_gives_one_line(miniature, tmp_path: Path) -> None:
    # Port 9 is "discard", which nothing on a development machine listens on.
    found = Website(tmp_path, "http://127.0.0.1:9/", timeout=1).fetch(miniature.files)
    assert not found.contents
    assert len(found.complaints) == 1
    assert "\n" not in found.complaints[0]


def test_a_read_only_cache_still_gives_the_data(miniature, tmp_path: Path, serve) -> None:
    url = serve(miniature.write_to(tmp_path / "site"))
    (tmp_path / "cache").write_text("a file where the directory should be")
    found = Website(tmp_path / "cache", url).fetch(miniature.files)
    assert found.contents == miniature.contents
    assert all("could not be kept" in complaint for complaint in found.complaints)


def debian_package(miniature, folder: Path) -> Path:
    """A real package with the miniature in it."""
    miniature.write_to(folder / "tree/usr/share/datasets/fashion-mnist")
    control = folder / "tree/DEBIAN/control"
    control.parent.mkdir()
    control.write_text(
        f"Package: {DEBIAN_PACKAGE}\nVersion: 1\nArchitecture: all\nMaintainer: A <a@b.c>\nDescription: small\n"
    )
    package = folder / f"{DEBIAN_PACKAGE}_1_all.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", str(folder / "tree"), str(package)], check=True, stdout=-3)
    return package


def apt_that(script: str, folder: Path) -> str:
    """A search path with a stand-in for apt-get that needs no network."""
    folder.mkdir()
    (folder / "apt-get").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "apt-get").chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


needs_dpkg = pytest.mark.skipif(not os.path.exists("/usr/bin/dpkg-deb"), reason="not a Debian system")


@needs_dpkg
def test_the_debian_package_is_unpacked_into_the_cache(miniature, tmp_path: Path, monkeypatch) -> None:
    package = debian_package(miniature, tmp_path)
    monkeypatch.setenv("PATH", apt_that(f"cp {package} .", tmp_path / "bin"))
    cache = tmp_path / "cache"
    found = DebianPackage(cache).fetch(miniature.files)
    assert found.contents == miniature.contents
    assert not found.complaints
    assert sorted(os.listdir(cache)) == ["images.gz", "labels.gz"]


@needs_dpkg
def test_empty_package_lists_are_fetched_without_touching_the_system(miniature, tmp_path: Path, monkeypatch) -> None:
    package = debian_package(miniature, tmp_path)
    script = f"""
        case "$*" in
            *Dir::State::Lists=*update*) touch updated ;;
            *Dir::State::Lists=*download*) test -e updated && cp {package} . ;;
            *) echo "E: Unable to locate package {DEBIAN_PACKAGE}" >&2; exit 100 ;;
        esac"""
    monkeypatch.setenv("PATH", apt_that(script, tmp_path / "bin"))
    assert DebianPackage(tmp_path / "cache").fetch(miniature.files).contents == miniature.contents


@needs_dpkg
def test_apts_error_is_reported_in_one_line(miniature, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", apt_that("echo noise; echo 'E: No such thing.' >&2; exit 100", tmp_path / "bin"))
    found = DebianPackage(tmp_path / "cache").fetch(miniature.files)
    assert found.complaints == [f"apt-get download {DEBIAN_PACKAGE}: E: No such thing."]
    assert not (tmp_path / "cache").exists()


def test_a_missing_apt_is_reported(miniature, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = DebianPackage(tmp_path / "cache").fetch(miniature.files)
    assert found.complaints == [f"apt-get download {DEBIAN_PACKAGE}: apt-get is not installed."]
