"""The code of the two published tutorials, if the documents are present (in PILOTAGE_SEEDS)."""

from __future__ import annotations

import os
import re
import textwrap
from pathlib import Path

import pytest
from PIL import Image

STANDIN = Path(__file__).with_name("standin")
TROUSERS = Path(__file__).parents[2] / "examples" / "fashion_mnist" / "images" / "trousers.png"


@pytest.fixture(scope="module")
def document():
    """Finds a document by its number."""
    folder = os.environ.get("PILOTAGE_SEEDS")
    if not folder:
        pytest.skip("PILOTAGE_SEEDS does not name the directory of the tutorial documents.")

    def read(number: str) -> str:
        found = sorted(Path(folder).glob(f"{number}_*.txt"))
        if not found:
            pytest.skip(f"There is no document {number}_*.txt in PILOTAGE_SEEDS.")
        return found[0].read_text(encoding="utf-8")

    return read


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a document that are marked with ``language``."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [content for marked, content in fenced if marked == language]


def after(diff: str) -> str:
    """The result of a diff: its new and its unchanged lines."""
    kept = [re.sub(r"^\+", " ", line) for line in diff.splitlines() if not line.startswith("-")]
    return textwrap.dedent("\n".join(kept)) + "\n"


def applied(source: str, diff: str) -> str:
    """``source`` with the one line that ``diff`` removes replaced by the one that it adds."""
    old, new = (next(line[1:].strip() for line in diff.splitlines() if line.startswith(sign)) for sign in ("-", "+"))
    changed, count = re.subn(rf"^( *){re.escape(old)}$", lambda match: match[1] + new, source, flags=re.MULTILINE)
    assert count == 1
    return changed


@pytest.mark.slow
def test_the_tutorial_runs_as_typed(document, run, tmp_path: Path) -> None:
    typed = blocks(document("004"), "python")
    assert len(typed) >= 20
    (tmp_path / "images").mkdir()
    Image.open(TROUSERS).save(tmp_path / "images" / "trousers.jpg")
    (tmp_path / "tutorial.py").write_text("\n".join(typed))
    done = run("tutorial.py", PYTHONPATH=str(STANDIN), STANDIN_IMAGES="96")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^Eval accuracy: \d+\.\d\d%$", done.stdout, re.MULTILINE)
    (device_class,) = re.findall(r"^IPU predicted class: (.+)$", done.stdout, re.MULTILINE)
    assert re.findall(r"^CPU predicted class: (.+)$", done.stdout, re.MULTILINE) == [device_class]
    made = {"classifier.pth", "sample_images.png", "confusion_matrix.png", "image_before_after.png"}
    assert made <= set(os.listdir(tmp_path))


# The document shows differences only. These are the lines around them that it leaves to its companion script.
IMPORTS = """
import torch
import torch.nn as nn
import torchvision
from tqdm import tqdm
"""
TRANSFORM = """
criterion = nn.NLLLoss()
transform = torchvision.transforms.Compose(
    [torchvision.transforms.ToTensor(), torchvision.transforms.Normalize((0.5,), (0.5,))]
)
"""
EVALUATION = """
training_model.detachFromDevice()
model.eval()
inference_model = poptorch.inferenceModel(model, options=opts)
test_dataloader = poptorch.DataLoader(opts, test_dataset, batch_size=16)
correct = sum((inference_model(data).argmax(1) == labels).sum().item() for data, labels in test_dataloader)
print(f"Eval accuracy: {100 * correct / len(test_dataset):.2f}%")
"""


def ported_script(text: str, *, custom_loss: bool) -> str:
    """The script that results from the porting document."""
    model_class = next(block for block in blocks(text, "") if "class ClassificationModel" in block)
    diffs = blocks(text, "diff")
    (options,) = (after(diff) for diff in diffs if "poptorch.Options()" in diff)
    (wrapper,) = (after(diff) for diff in diffs if "class ModelwithLoss" in diff)
    (dataset,) = (after(diff) for diff in diffs if "poptorch.DataLoader" in diff)
    (optimizer,) = (after(diff) for diff in diffs if "poptorch.optim.SGD" in diff)
    (loop,) = (after(diff) for diff in diffs if "for data, labels in bar" in diff)
    (identity,) = (diff for diff in diffs if "poptorch.identity_loss" in diff)
    wrapper = applied(wrapper, identity) if custom_loss else wrapper
    # The optimizer needs the model, and the wrapped model needs the optimizer.
    before_training_model = wrapper.index("training_model =")
    wrapper, training_model = wrapper[:before_training_model], wrapper[before_training_model:]
    epochs = "for epoch in range(2):\n    bar = tqdm(train_dataloader)\n" + textwrap.indent(loop, "    ")
    parts = (IMPORTS, model_class, options, TRANSFORM, dataset, wrapper, optimizer, training_model, epochs, EVALUATION)
    return "\n".join(parts)


@pytest.mark.slow
@pytest.mark.parametrize("custom_loss", [False, True], ids=["torch-loss", "identity-loss"])
def test_the_port_runs_as_its_document_builds_it(document, run, tmp_path: Path, custom_loss: bool) -> None:
    script = ported_script(document("003"), custom_loss=custom_loss)
    assert ("identity_loss" in script) == custom_loss
    (tmp_path / "pytorch_ipu.py").write_text(script)
    done = run("pytorch_ipu.py", PYTHONPATH=str(STANDIN), STANDIN_IMAGES="160")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^Eval accuracy: \d+\.\d\d%$", done.stdout, re.MULTILINE)
