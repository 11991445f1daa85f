from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

VENDORS = '''
"""A package that needs of PopTorch what Graphcore's package of this name needs."""
import poptorch
from poptorch import ICustomArgParser, _OverwriteContextManager, registerCustomArgParser
from poptorch.options import Options
from poptorch._args_parser import ICustomArgParser as same
from poptorch._impl import _OverwriteContextManager as replaced
assert same is ICustomArgParser and replaced is _OverwriteContextManager
assert callable(poptorch.fps) and callable(poptorch.nearest) and callable(poptorch.isRunningOnIpu)
used = []
class Swap:
    def replace(self):
        used.append("replace")
    def restore(self):
        used.append("restore")
_OverwriteContextManager.registerSubsitutionManager(Swap)
'''

PROGRAM = """
import sys, torch
{before}
import poptorch, poptorch_geometric
model = poptorch.inferenceModel(torch.nn.Linear(2, 1), poptorch.Options().showCompilationProgressBar(False))
model(torch.ones(1, 2))
print(poptorch_geometric.used[:2])
"""


def test_another_package_in_front_is_used_and_its_substitutions_apply(tmp_path):
    package = tmp_path / "poptorch_geometric"
    package.mkdir()
    (package / "__init__.py").write_text(VENDORS)
    before = f"sys.path.insert(0, {str(tmp_path)!r})"
    ran = subprocess.run([sys.executable, "-c", PROGRAM.format(before=before)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "['replace', 'restore']"


def test_without_pytorch_geometric_importing_it_says_what_to_install():
    hidden = "import importlib.util as u; find = u.find_spec\n"
    hidden += "u.find_spec = lambda name, *rest: None if name == 'torch_geometric' else find(name, *rest)\n"
    program = f"{hidden}import poptorch_geometric"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.returncode == 1
    assert "poptorch_geometric needs PyTorch Geometric" in ran.stderr
    assert "pip install torch_geometric" in ran.stderr
