import importlib.util
import shutil

import pytest

from pilotage.cli.doctor.compilers import examine_compiler, examine_headers, examine_triton
from pilotage.cli.doctor.finding import Verdict


@pytest.mark.skipif(shutil.which("g++") is None, reason="this machine has no g++")
def test_a_compiler_is_found_with_its_version():
    finding = examine_compiler("g++")
    assert finding.verdict is Verdict.GOOD
    assert finding.facts["path"] == shutil.which("g++")
    assert finding.facts["version"] in finding.value


def test_a_missing_compiler_is_not_a_problem(tmp_path):
    finding = examine_compiler(str(tmp_path / "no-such-compiler"))
    assert finding.verdict is Verdict.ABSENT
    assert "Programs run without it" in finding.remedy


def test_a_compiler_that_fails_is_warned_about(tmp_path):
    compiler = tmp_path / "broken"
    compiler.write_text("#!/bin/sh\necho 'no licence' >&2\nexit 3\n")
    compiler.chmod(0o755)
    finding = examine_compiler(str(compiler))
    assert finding.verdict is Verdict.WARNING
    assert finding.value == "no licence"


def test_headers_are_found_or_their_package_is_named(tmp_path):
    assert "python3-dev" in examine_headers(str(tmp_path)).remedy
    (tmp_path / "Python.h").touch()
    assert examine_headers(str(tmp_path)).verdict is Verdict.GOOD


def test_triton_is_reported_as_it_is_installed():
    installed = importlib.util.find_spec("triton") is not None
    assert examine_triton().verdict is (Verdict.GOOD if installed else Verdict.ABSENT)
