"""What goes to a package index: metadata, extras that fit together, and the files that `make dist` builds."""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from pilotage.version import FIRST_UNTESTED_TORCH, OLDEST_TORCH
from tools.distributions import LINK, linked

ROOT = Path(__file__).parents[2]
HOME_PAGE = "https://example.org/pilotage"


def project(folder: str) -> dict:
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("folder", [".", "dropins"])
def test_the_metadata_names_keywords_and_every_python_that_is_tested(folder):
    metadata = project(folder)
    assert len(metadata["keywords"]) >= 5
    named = {each.rpartition(" ")[2] for each in metadata["classifiers"] if "Python :: 3." in each}
    assert named == {"3.11", "3.12", "3.13"}


def test_torchvision_is_limited_to_the_releases_that_were_built_against_our_torch():
    """torchvision 0.(N + 15) is built against torch 2.N, and requires exactly that one."""
    (wanted,) = project(".")["optional-dependencies"]["vision"]
    assert wanted == f"torchvision>=0.{OLDEST_TORCH[1] + 15},<0.{FIRST_UNTESTED_TORCH[1] + 15}"


def test_the_extras_of_the_drop_ins_are_those_of_the_core():
    extras, version = project("dropins")["optional-dependencies"], project(".")["version"]
    for name in ("torch", "vision", "notebook", "terminal"):
        assert extras[name] == [f"pilotage[{name}]=={version}"]
        assert name in project(".")["optional-dependencies"]


def test_the_citation_has_the_version():
    assert f"\nversion: {project('.')['version']}\n" in (ROOT / "CITATION.cff").read_text()


def replaced(text: str, home_page: str, inside: str = "") -> str:
    return LINK.sub(lambda link: linked(link, home_page, inside), text)


def test_links_become_absolute_or_plain_words():
    text = "See [cache](docs/cache.md#limits), ![curve](docs/a.png), [torch](https://pytorch.org) and [below](#end)."
    assert replaced(text, HOME_PAGE) == (
        f"See [cache]({HOME_PAGE}/docs/cache.md#limits), ![curve]({HOME_PAGE}/docs/a.png), "
        "[torch](https://pytorch.org) and [below](#end)."
    )
    assert replaced(text, "") == "See cache, , [torch](https://pytorch.org) and [below](#end)."
    assert replaced("[core](../README.md), [x](y.md)", HOME_PAGE, "dropins/") == (
        f"[core]({HOME_PAGE}/README.md), [x]({HOME_PAGE}/dropins/y.md)"
    )


@pytest.mark.slow
def test_wheels_and_sdists_are_built_with_urls_and_a_readme_without_relative_links(tmp_path):
    command = [sys.executable, ROOT / "tools/distributions.py", "--no-trial", "--output", tmp_path / "dist"]
    subprocess.run([*command, "--home-page", HOME_PAGE], check=True, capture_output=True)
    built = sorted(path.name for path in (tmp_path / "dist").iterdir())
    version = project(".")["version"]
    assert built == [
        f"pilotage-{version}-py3-none-any.whl",
        f"pilotage-{version}.tar.gz",
        f"pilotage_dropins-{version}-py3-none-any.whl",
        f"pilotage_dropins-{version}.tar.gz",
    ]
    for name in built:
        metadata = Parser().parsestr(metadata_of(tmp_path / "dist" / name))
        assert f"Homepage, {HOME_PAGE}" in metadata.get_all("Project-URL")
        assert "Programming Language :: Python :: 3.13" in metadata.get_all("Classifier")
        assert not re.search(r"\]\((?![a-z]+:|#)", metadata.get_payload())


def metadata_of(file: Path) -> str:
    if file.suffix == ".whl":
        wheel = zipfile.ZipFile(file)
        return wheel.read(next(name for name in wheel.namelist() if name.endswith("METADATA"))).decode()
    with tarfile.open(file) as archive:
        return archive.extractfile(f"{file.name.removesuffix('.tar.gz')}/PKG-INFO").read().decode()
