"""The drop-in steps aside for the vendor's own software, and only for that."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def import_beside(tmp_path):
    """Imports the drop-in where a stand-in for another distribution is installed."""

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
def test_beside_the_vendors_bridge_the_import_is_refused_with_the_remedy(import_beside, distribution):
    ran = import_beside(distribution)
    assert ran.returncode != 0
    assert "ImportError: habana-torch-plugin is installed here" in ran.stderr
    assert "Uninstall pilotage-dropins" in ran.stderr


def test_the_media_loader_is_no_bridge(import_beside):
    ran = import_beside("habana-media-loader")
    assert (ran.returncode, ran.stdout.strip()) == (0, "False"), ran.stderr


def test_the_engine_takes_no_emulated_card_and_starts_none():
    program = "import sys; from pilotage.backends.hpu import HpuBackend; print(HpuBackend().problem(), 'torch.hpu' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stdout.strip() == "habana_frameworks is the drop-in that emulates the card on the CPU False", ran.stderr
