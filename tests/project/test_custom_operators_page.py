"""The code on the page about custom operators, run block by block in one program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import poptorch
from poptorch.ops import custom

PAGE = Path(__file__).parents[2] / "docs" / "custom-operators.md"
X = torch.tensor([1.5, -2.0, 0.5, -0.25])


@pytest.fixture(scope="module")
def blocks():
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)


@pytest.fixture
def no_implementations(monkeypatch):
    monkeypatch.setattr(custom, "_implementations", {})
    monkeypatch.setenv("PILOTAGE_BACKEND", "cpu")


@pytest.mark.slow
@pytest.mark.usefixtures("no_implementations")
def test_the_code_on_the_page_trains_as_eager_pytorch_does_with_either_implementation(blocks):
    model_code, with_library, with_decorator, checking = blocks
    page = {"__name__": "page"}
    exec(model_code + with_library + checking, page)
    assert page["training"].isCompiled()

    for code in ("", with_decorator):
        exec(code, page)
        model, reference = page["Model"](), page["Model"]()
        options = poptorch.Options().showCompilationProgressBar(False)
        training = poptorch.trainingModel(model, options, poptorch.optim.SGD(model.parameters(), lr=0.1))
        outputs, loss = training(X)
        cubes = torch.where(X > 0, 0.5 * X, 0.02 * 0.5 * X) ** 3
        torch.testing.assert_close(outputs, cubes)
        torch.testing.assert_close(loss.squeeze(), cubes.sum())
        _, total = reference(X)
        total.backward()
        torch.testing.assert_close(model.scale.data, reference.scale.data - 0.1 * reference.scale.grad)
