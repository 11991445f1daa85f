"""The walkthrough, as a script and as a notebook."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import jupytext
import nbformat
import pytest
import torch

TUTORIAL = Path(__file__).parents[2] / "examples" / "fashion_mnist"
FEW = {"WALKTHROUGH_SUBSET": "160", "WALKTHROUGH_DATA": "generated"}
ARTEFACTS = {"classifier.pth", "sample_images.png", "confusion_matrix.png", "image_before_after.png"}


def test_the_notebook_is_made_from_the_script() -> None:
    script = jupytext.read(TUTORIAL / "walkthrough.py")
    notebook = jupytext.read(TUTORIAL / "walkthrough.ipynb")
    assert [(cell.cell_type, cell.source) for cell in notebook.cells] == [
        (cell.cell_type, cell.source) for cell in script.cells
    ]
    assert not any(cell.get("outputs") for cell in notebook.cells)


def test_script_and_modules_have_the_same_network(tutorial_module) -> None:
    source = (TUTORIAL / "walkthrough.py").read_text()
    start = source.index("class Classifier")
    names: dict[str, type[torch.nn.Module]] = {"torch": torch, "nn": torch.nn}  # type: ignore[dict-item]
    exec(source[start : source.index("\n\nmodel = ", start)], names)
    torch.manual_seed(3)
    told = names["Classifier"]()
    torch.manual_seed(3)
    built = tutorial_module("model").GarmentClassifier()
    images, labels = torch.randn(4, 1, 28, 28), torch.tensor([1, 2, 3, 4])
    assert list(told.state_dict()) == list(built.state_dict())
    for one, other in zip(told(images, labels), built(images, labels), strict=True):
        assert torch.equal(one, other)


@pytest.mark.slow
def test_the_script_runs(run, tmp_path: Path) -> None:
    done = run(TUTORIAL / "walkthrough.py", **FEW)
    assert done.returncode == 0, done.stderr
    assert set(os.listdir(tmp_path / "output")) == ARTEFACTS
    assert "accuracy over 160 test pictures" in done.stdout
    assert "without poptorch: " in done.stdout


@pytest.mark.slow
# The notebook kernel emits warnings that we cannot change.
@pytest.mark.filterwarnings("default")
def test_the_notebook_runs(tmp_path: Path, environment, monkeypatch) -> None:
    from nbclient import NotebookClient

    shutil.copytree(TUTORIAL / "images", tmp_path / "images")
    # The kernel chooses its own backend for pictures inside a notebook.
    for name, value in ({k: v for k, v in environment.items() if k != "MPLBACKEND"} | FEW).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("MPLBACKEND", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(TUTORIAL.parents[1]))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    notebook = nbformat.read(TUTORIAL / "walkthrough.ipynb", as_version=4)
    NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert set(os.listdir(tmp_path / "output")) >= ARTEFACTS
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 3
