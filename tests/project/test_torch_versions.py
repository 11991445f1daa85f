"""Pilotage under each torch that can be installed: the private names, the README's examples and a compiled training."""

import re
import shutil
import subprocess
import venv
from pathlib import Path

import pytest

from pilotage.version import FIRST_UNTESTED_TORCH, OLDEST_TORCH, TORCH_RANGE

ROOT = Path(__file__).parents[2]
VERSIONS = ("2.11.0", "2.12.1", "2.13.0")
"""The last patch of each release in the range; docs/torch-versions.md says how to add the next one."""

NEWER = ("2.14.1", "2.15.0")
"""Releases after the range."""

NAMES = "from pilotage import torch_private; torch_private.check_all()"

COMPILED = """
import torch, pilotage

def train(wrap):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    return [float(loss) for loss in wrap(model, optimizer, torch.randn(5, 8, 1, 8, 8), torch.randint(3, (5, 8)))]

def eager(model, optimizer, images, labels):
    for batch, target in zip(images, labels):
        loss = torch.nn.functional.cross_entropy(model(batch), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.detach()

def compiled(model, optimizer, images, labels):
    step = pilotage.training(model, optimizer, loss=torch.nn.CrossEntropyLoss(), tier="compiled")
    for batch, target in zip(images, labels):
        yield step(batch, target)[1]
    assert pilotage.record_of(step).latest_tier == "compiled", pilotage.record_of(step)

torch.testing.assert_close(train(compiled), train(eager), rtol=1e-4, atol=1e-6)
"""


def examples() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture(params=VERSIONS + NEWER)
def interpreter(request, tmp_path):
    """A Python with one version of torch and numpy, and nothing else of ours than the sources."""
    folder = tmp_path / "environment"
    venv.create(folder, with_pip=True)
    python = folder / "bin/python"
    installing = [python, "-m", "pip", "install", "-q", "--no-cache-dir", f"torch=={request.param}", "numpy"]
    installed = subprocess.run(installing, capture_output=True, text=True, check=False)
    if installed.returncode != 0:
        pytest.skip(f"torch {request.param} cannot be installed here: {installed.stderr.strip().splitlines()[-1]}")
    yield python
    shutil.rmtree(folder)  # Several gigabytes.


@pytest.mark.downloads
@pytest.mark.timeout(3600)
def test_names_example_and_compiled_training_work(interpreter, tmp_path):
    for program in (NAMES, *examples(), COMPILED):
        done = run(interpreter, program, tmp_path)
        assert done.returncode == 0, done.stderr


def test_the_range_holds_the_versions_that_are_tried():
    minors = [tuple(map(int, version.split(".")[:2])) for version in VERSIONS]
    assert minors == [(2, minor) for minor in range(OLDEST_TORCH[1], FIRST_UNTESTED_TORCH[1])]
    for file in (
        *("pyproject.toml", "README.md", "requirements-torch.txt"),
        *("docs/torch-versions.md", "docs/start/install.md"),
    ):
        assert TORCH_RANGE in (ROOT / file).read_text(), file


def run(interpreter: Path, program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": f"{interpreter.parent}:/usr/bin:/bin",
        "HOME": str(folder),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'dropins/src'}",
    }
    return subprocess.run(
        [interpreter, "-c", program], capture_output=True, text=True, check=False, cwd=folder, env=environment
    )
