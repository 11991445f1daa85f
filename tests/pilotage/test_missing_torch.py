"""What is said where torch is not installed."""

import subprocess
import sys

import pytest

from pilotage.missing_torch import torch_needed_by

WITHOUT_TORCH = """
import sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, NoTorch())
"""


@pytest.mark.parametrize(
    ("program", "install"),
    [
        ("import poptorch", '"pilotage-dropins[torch]"'),
        ("import popdist", '"pilotage-dropins[torch]"'),
        ("import habana_frameworks.torch", '"pilotage-dropins[torch]"'),
        ("import pilotage; pilotage.training", '"pilotage[torch]"'),
    ],
)
def test_the_first_use_of_torch_says_what_to_install(program, install):
    ran = subprocess.run([sys.executable, "-c", WITHOUT_TORCH + program], capture_output=True, text=True)
    assert ran.returncode == 1
    last = ran.stderr.splitlines()[-1]
    assert last.startswith("ModuleNotFoundError: pilotage")
    assert f"needs PyTorch, which is not installed in this environment. Install it with: pip install {install}" in last
    assert "pytorch.org/get-started" in last


def test_importing_pilotage_needs_no_torch():
    ran = subprocess.run([sys.executable, "-c", WITHOUT_TORCH + "import pilotage; print(pilotage.__version__)"])
    assert ran.returncode == 0


def test_another_missing_module_keeps_its_error():
    with (
        pytest.raises(ModuleNotFoundError, match="No module named 'no_such_module'"),
        torch_needed_by("pilotage", distribution="pilotage"),
    ):
        import no_such_module  # noqa: F401
