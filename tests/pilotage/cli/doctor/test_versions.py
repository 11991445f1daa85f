import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import torch

from pilotage.cli.doctor.finding import Verdict
from pilotage.cli.doctor.versions import TORCH_RANGE, describe_build, examine_numpy, examine_torch, fits_range

PYPROJECT = Path(__file__).parents[4] / "pyproject.toml"


def test_the_range_of_torch_is_the_one_that_the_distribution_declares():
    extras = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    assert extras["torch"] == [TORCH_RANGE]


@pytest.mark.parametrize(
    ("version", "fits"),
    [
        ("2.6.0+vendor", False),
        ("2.10.9", False),
        ("2.11.0+cu130", True),
        ("2.12.0a0+git1234", True),
        ("2.13.0", True),
        ("2.14.0", False),
        ("3.0", False),
        ("unknown", False),
    ],
)
def test_versions_from_the_oldest_to_the_last_tested_one_fit(version, fits):
    assert fits_range(version) is fits


@pytest.mark.parametrize(
    ("version", "cuda", "hip", "build"),
    [
        ("2.13.0+cpu", None, None, "CPU build"),
        ("2.13.0", None, None, "CPU build"),
        ("2.13.0", "13.0", None, "CUDA 13.0 build"),
        ("2.11.0+rocm7.0", None, "7.0", "ROCm 7.0 build"),
        ("2.9.0+hpu.1.23", None, None, "vendor's build 'hpu.1.23'"),
    ],
)
def test_a_build_says_what_it_was_made_for(version, cuda, hip, build):
    assert describe_build(version, cuda, hip) == build


def test_the_torch_of_this_environment_is_found():
    finding, module = examine_torch()
    assert module is torch
    assert finding.facts["version"] == torch.__version__
    assert finding.verdict is (Verdict.GOOD if fits_range(torch.__version__) else Verdict.WARNING)
    assert examine_numpy().verdict is Verdict.GOOD


def examine_in_a_world_with(torch_source: str | None, folder: Path) -> str:
    """Examine torch in an interpreter that finds the given torch, or none at all."""
    block = "sys.modules['torch'] = None" if torch_source is None else f"sys.path.insert(0, {str(folder)!r})"
    if torch_source is not None:
        (folder / "torch").mkdir()
        (folder / "torch/__init__.py").write_text(torch_source)
    program = f"import sys; {block}; from pilotage.cli.doctor.versions import examine_torch; f, m = examine_torch(); "
    program += "print(f.verdict, m is None, f.value, f.remedy, sep='|')"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_a_missing_torch_is_a_problem_with_a_remedy(tmp_path):
    verdict, missing, value, remedy = examine_in_a_world_with(None, tmp_path).split("|")
    assert (verdict, missing) == ("problem", "True")
    assert f"pip install '{TORCH_RANGE}'" in remedy
    assert value


def test_a_torch_that_does_not_import_is_a_problem_that_quotes_the_reason(tmp_path):
    source = "raise OSError('libsynapse.so: cannot open shared object file')"
    verdict, missing, value, _ = examine_in_a_world_with(source, tmp_path).split("|")
    assert (verdict, missing) == ("problem", "True")
    assert "libsynapse.so: cannot open shared object file" in value


def test_a_vendors_torch_outside_the_range_is_kept_and_warned_about(tmp_path):
    source = "class version: cuda = None\n__version__ = '2.6.0+vendor'"
    verdict, missing, value, remedy = examine_in_a_world_with(source, tmp_path).split("|")
    assert (verdict, missing) == ("warning", "False")
    assert "vendor's build 'vendor'" in value
    assert "never replaces" in remedy
