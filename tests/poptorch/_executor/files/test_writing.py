"""Where files are written, and what is in them."""

from __future__ import annotations

import json
import pickletools
import subprocess
import sys
import textwrap

import pytest
import torch
from torch import nn

import poptorch

pytestmark = pytest.mark.slow


def is_pickle(data):
    if not data.startswith(b"\x80"):
        return False
    try:
        list(pickletools.genops(data))
    except Exception:
        return False
    return True


def test_missing_folders_are_created(tmp_path, inputs, targets, trainer):
    model = trainer()
    model.compile(inputs, targets)
    model.save(str(tmp_path / "a" / "b" / "model"))
    assert poptorch.load(str(tmp_path / "a" / "b" / "model")).isCompiled()


def test_a_folder_as_target_gives_a_default_name_and_a_warning(
    tmp_path, warnings_of_poptorch, inputs, targets, trainer
):
    model = trainer()
    model.compile(inputs, targets)
    model.save(tmp_path)
    assert (tmp_path / "model.poptorch").is_file()
    (said,) = warnings_of_poptorch()
    assert "is a directory" in said
    assert "model.poptorch" in said


def test_compiling_and_exporting_is_one_step(path, inputs, targets, trainer, losses):
    model = trainer(seed=2)
    model.compileAndExport(str(path), inputs, targets)
    assert model.isCompiled()
    assert losses(poptorch.load(path)) == losses(model)


def test_a_trained_model_is_exported_with_its_state(path, inputs, targets, trainer, losses):
    model = trainer(seed=2)
    losses(model)
    model.compileAndExport(path, inputs, targets)
    assert losses(poptorch.load(path)) == losses(model)


def test_a_file_holds_no_pickle_and_no_code(path, trainer, losses):
    model = trainer()
    losses(model)
    model.save(path)
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    assert isinstance(json.loads(header.pop("__metadata__")["pilotage"]), dict)
    assert len(header) > 3
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        assert not is_pickle(data[8 + size + start : 8 + size + end]), name
    assert not is_pickle(data)


def test_the_file_runs_without_the_class(path, tmp_path, trainer, losses):
    model = trainer(seed=4)
    losses(model)
    model.save(path)
    expected = losses(model)
    program = f"""
        import torch, poptorch
        model = poptorch.load({str(path)!r})
        X, Y = torch.linspace(-1, 1, 12).reshape(4, 3) ** 3, torch.zeros(4, 2)
        print([model(X, Y)["loss"].item() for _ in range(3)])
        print(type(model.model).__name__, sorted(model.state_dict()))
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    printed = ran.stdout.splitlines()
    assert json.loads(printed[0]) == expected
    assert printed[1] == "BareModule ['count', 'layer.bias', 'layer.weight']"


def test_the_weights_of_a_loaded_model_fit_its_class(path):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(2, 2), nn.Linear(2, 2)
            self.second.weight = self.first.weight
            self.register_buffer("hidden", torch.ones(1), persistent=False)

        def forward(self, x):
            return poptorch.identity_loss(self.second(self.first(x)) + self.hidden, "sum")

    module = Tied()
    model = poptorch.trainingModel(module)
    model(torch.ones(1, 2))
    model.save(path)
    again = poptorch.load(path)
    again(torch.ones(1, 2))
    assert again.model.first.weight is again.model.second.weight
    other = Tied()
    other.load_state_dict(again.state_dict())
    assert torch.equal(other.second.bias, again.model.second.bias)


def test_calling_a_module_without_its_class_explains_why(path, inputs, targets, trainer):
    model = trainer()
    model.compile(inputs, targets)
    model.save(path)
    with pytest.raises(RuntimeError, match="has no Python code"):
        poptorch.load(path).model(inputs)
