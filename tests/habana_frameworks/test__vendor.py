"""The drop-in refuses to be imported beside the vendor's own software, and only then."""

import os
import subprocess
import sys

import pytest
import torch

pytestmark = pytest.mark.slow


@pytest.fixture
def import_beside(tmp_path):
    """Imports the drop-in beside a stand-in for another distribution."""

    def run(distribution: str) -> subprocess.CompletedProcess[str]:
        information = tmp_path / f"{distribution.replace('-', '_')}-1.24.0.dist-info"
        information.mkdir()
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.24.0\n")
        program = (
            f"import sys; sys.path.append({str(tmp_path)!r}); import habana_frameworks; print('torch' in sys.modules)"
        )
        return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    return run


@pytest.mark.parametrize("distribution", ["habana-torch-plugin", "habana_torch_plugin"])
def test_beside_the_vendors_bridge_the_import_fails_with_instructions(import_beside, distribution):
    ran = import_beside(distribution)
    assert ran.returncode != 0
    assert "ImportError: habana-torch-plugin is installed here" in ran.stderr
    assert "Uninstall pilotage-dropins" in ran.stderr


def test_the_media_loader_does_not_count_as_the_bridge(import_beside):
    ran = import_beside("habana-media-loader")
    assert (ran.returncode, ran.stdout.strip()) == (0, "False"), ran.stderr


@pytest.mark.skipif(torch.cuda.is_available(), reason="the CUDA device here is taken first")
def test_the_engine_does_not_use_or_start_the_emulated_card_by_default():
    program = """
import sys
from pilotage.devices.registry import choose
print(choose().reason, 'torch.hpu' in sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "no hpu: habana_frameworks is the drop-in that emulates the card) False" in ran.stdout, ran.stderr


def test_the_engine_is_not_fooled_by_the_empty_package_of_the_media_loader(tmp_path):
    (tmp_path / "habana_frameworks/mediapipe").mkdir(parents=True)
    (tmp_path / "habana_frameworks/mediapipe/__init__.py").write_text("")
    # The drop-ins' folder is not on the path, so the import finds the empty package.
    program = f"""
import sys, torch
sys.path[:] = [{str(tmp_path)!r}] + [place for place in sys.path if not place.endswith("dropins/src")]
import habana_frameworks.mediapipe
from pilotage.devices.hpu import HpuBackend
from pilotage.cli.doctor.packages import examine_habana
backend = HpuBackend()
print(backend.problem(asked=False), backend.problem(), examine_habana().facts["maker"], sep="; ")
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stdout.strip() == "; ".join([*["habana_frameworks.torch is not installed"] * 2, "namespace"]), ran.stderr


def test_beside_the_vendors_bridge_the_engine_reports_why_the_drop_in_does_not_work(tmp_path):
    information = tmp_path / "habana_torch_plugin-1.24.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: habana-torch-plugin\nVersion: 1.24.0\n")
    program = f"""
import sys; sys.path.append({str(tmp_path)!r})
from pilotage.devices.hpu import HpuBackend
backend = HpuBackend()
unasked, asked = backend.problem(asked=False), backend.problem()
print(unasked == asked, asked)
"""
    # There, torch imports normally and starts nothing of the drop-in.
    environment = os.environ | {"PT_HPU_GPU_MIGRATION": "1", "PYTHONPATH": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert ran.stdout.startswith(
        "True habana_frameworks.torch does not import (habana-torch-plugin is installed here"
    ), ran.stderr
