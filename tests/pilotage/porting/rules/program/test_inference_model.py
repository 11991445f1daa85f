from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.porting.driver import port_texts
from pilotage.porting.target import Target

TEXT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.randn({count}, 8)), batch_size=16{more})
model = nn.Linear(8, 2)
model.eval()
with torch.no_grad():
    for x, in loader:
        {use}
"""


def ported(count: int = 100, more: str = "", use: str = "scores = model(x)", target: Target = Target.POPTORCH) -> str:
    text = TEXT.format(count=count, more=more, use=use)
    return port_texts({Path("script.py"): text}, target).files[0].after


def test_an_incomplete_batch_goes_to_the_module():
    assert "scores = inference_model(x) if len(x) == loader.batch_size else model(x)\n" in ported()


@pytest.mark.parametrize("given", [{"count": 96}, {"more": ", drop_last=True"}])
def test_batches_of_one_size_need_no_check(given):
    assert "scores = inference_model(x)\n" in ported(**given)


def test_a_call_inside_of_an_expression_gets_brackets():
    assert "(inference_model(x) if len(x) == loader.batch_size else model(x)).argmax(1)" in ported(
        use="best = model(x).argmax(1)"
    )


def test_the_wrapped_model_is_put_in_evaluation_mode_by_poptorch_only():
    assert "inference_model = poptorch.inferenceModel(model)\ninference_model.eval()\n" in ported()
    assert "inference_model = pilotage.inference(model)\nmodel.eval()\n" in ported(target=Target.PILOTAGE)
