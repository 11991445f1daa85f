"""The files around the sources: Makefile, metadata, changelog, documents."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import pilotage

ROOT = Path(__file__).parents[2]
PROMISED_TARGETS = {"bench", "check", "clean", "dist", "run", "setup", "test", "test-long"}
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md"), *ROOT.glob("dropins/*.md")]
KINDS_OF_CHANGE = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def make(*arguments: str) -> str:
    ran = subprocess.run(["make", *arguments], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def targets() -> set[str]:
    return set(re.findall(r"^  make ([a-z-]+) +\S", make(), re.MULTILINE))


def project(folder: str) -> dict:
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]


def test_make_without_a_target_lists_all_targets():
    assert targets() >= PROMISED_TARGETS


def test_every_listed_target_exists():
    for target in targets():
        assert make("--dry-run", target).strip()


def test_ci_checks_the_sources_and_runs_the_tests():
    script = ROOT / ".ci/run"
    assert script.read_text().splitlines()[0] == "#!/usr/bin/env bash"
    assert "set -euo pipefail" in script.read_text()
    assert re.search(r"^make check-sources\nmake test$", script.read_text(), re.MULTILINE)
    assert script.stat().st_mode & 0o111


COLLECTING = """
import sys, pytest
for options in sys.argv[2:]:
    print("options:", options, flush=True)
    status = pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", *options.split(), sys.argv[1]])
    print("status:", int(status), flush=True)
"""
"""Collects the tests of a file once with each group of options; starting pytest takes longer than collecting."""


def collected(*options: str) -> tuple[list[str], str]:
    """What pytest printed for each of these options, and its errors."""
    command = [sys.executable, "-c", COLLECTING, __file__, *options]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    printed = re.split(r"^options: .*$", ran.stdout, flags=re.MULTILINE)[1:]
    assert len(printed) == len(options), ran.stdout + ran.stderr
    return printed, ran.stderr


def test_the_parts_of_the_tests_are_complete_and_disjoint():
    printed, errors = collected("--part=1/3", "--part=2/3", "--part=3/3", "")
    assert all(text.rstrip().endswith("status: 0") for text in printed), errors
    *parts, whole = ([line for line in text.splitlines() if "::" in line] for text in printed)
    assert len(whole) > 30
    assert sorted(test for part in parts for test in part) == sorted(whole)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert "--part 2/3" in make("--dry-run", "test-long", "PART=2/3")


def test_an_invalid_part_is_refused():
    printed, errors = collected("--part=0/3", "--part=4/3", "--part=third")
    assert not any(text.rstrip().endswith("status: 0") for text in printed)
    assert errors.count("Write K/N with K from 1 to N") == 3


def test_both_distributions_have_the_same_version():
    core, dropins = project("."), project("dropins")
    assert core["version"] == dropins["version"] == pilotage.__version__
    assert f"pilotage=={core['version']}" in dropins["dependencies"]


def test_torch_is_never_required_so_that_a_vendors_build_is_kept():
    for folder in (".", "dropins"):
        required = project(folder)["dependencies"]
        extras = project(folder).get("optional-dependencies", {})
        for requirement in [*required, *(each for name, extra in extras.items() if name != "torch" for each in extra)]:
            assert re.match(r"[\w-]+", requirement)[0] != "torch", requirement


def test_the_pinned_torch_is_in_the_supported_range():
    (pinned,) = re.findall(r"^torch==2\.(\d+)\.\d+$", (ROOT / "requirements-torch.txt").read_text(), re.MULTILINE)
    low, high = re.fullmatch(r"torch>=2\.(\d+),<2\.(\d+)", *project(".")["optional-dependencies"]["torch"]).groups()
    assert int(low) <= int(pinned) < int(high)


def test_the_changelog_has_the_right_format():
    text = (ROOT / "CHANGELOG.md").read_text()
    assert text.startswith("# Changelog\n")
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", heading) for heading in headings[1:])
    assert set(re.findall(r"^### (.*)$", text, re.MULTILINE)) <= KINDS_OF_CHANGE


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_names_only_files_and_targets_that_exist(document):
    text = document.read_text()
    for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        assert re.match(r"[a-z]+:", link) or (document.parent / link).exists(), link
    for picture in re.findall(r'(?:src|href)="([^"#]+)"', text):
        assert re.match(r"[a-z]+:", picture) or (document.parent / picture).exists(), picture
    mentioned = set(re.findall(r"(?:^|`)make ([a-z][a-z-]*)", text, re.MULTILINE))
    assert mentioned <= targets()
