"""Twenty architectures under autocast to bfloat16: on a card, and with the rewrites for a card if there is none."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from corpus import CASES

import pilotage

ON_CARD = (
    *("ResNet", "ResNeXt", "DenseNet", "Inception", "DeepLab", "MobileNetV3", "EfficientNet", "RegNet", "ConvNeXt"),
    *("ViT", "Swin", "GPT-2", "BERT", "T5", "Llama", "Mixtral", "U-Net", "diffusion U-Net", "GAN generator", "DLRM"),
)
REWRITTEN = ("ResNet", "DenseNet", "Inception", "EfficientNet", "U-Net", "GAN generator")
"""Architectures with convolutions and normalisations, whose graphs the rewrites for a card change."""

WITH_REWRITES = """
import sys
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, sys.argv[1])
import torch
from corpus import CASES

import pilotage
from pilotage.compiler.accuracy.trial import Trial
from pilotage.compiler.attempts import compile_without_failing_changes
from pilotage.compiler.code import NativeCode
from pilotage.compiler.rewrites import few_channels
from pilotage.passes.channels_last import in_channels_last
from pilotage.program.program import Action

# Without a card nothing can be timed.
few_channels.is_faster = lambda *_: True
torch.manual_seed(0)
case = CASES[sys.argv[2]]
model, inputs = case.make(), list(case.inputs())
trainer = pilotage.training(model, case.optimizer(model.parameters()), backend="cpu", tier="graph", check="off")
with torch.autocast("cpu", torch.bfloat16):
    trainer.compile(*inputs)
session = trainer._executor.session
buffers = {name: each.clone() for name, each in session.attached.buffers().items()}
taken = {action: inputs for action in session.captured.computations if action is not Action.UPDATE}
job = SimpleNamespace(
    program=session.captured, device=torch.device("cpu"), inputs=taken, buffers=buffers, runs={}
)
program = in_channels_last(session.captured) if sys.argv[3] == "channels last" else session.captured
for action, computation in program.computations.items():
    arguments = Trial(job, program).arguments(action)
    folder = Path(sys.argv[4]) / action.value
    done = compile_without_failing_changes(computation.graph, arguments, folder, torch.device("cuda"))
    expected, found = ([each.clone() for each in arguments] for _ in range(2))
    torch.manual_seed(1)
    (loss, *_) = computation.graph(*expected)
    torch.manual_seed(1)
    (same, *_) = NativeCode(folder, torch.device("cpu"))(*found)
    torch.testing.assert_close(same, loss, rtol=2e-2, atol=2e-2)
    print(*done.made, sep=", ")
    assert not done.dropped, done.dropped
"""


def test_twenty_architectures_are_chosen():
    assert len({*ON_CARD} & {*CASES}) == 20
    assert {*REWRITTEN} <= {*CASES}


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("layout", ["as captured", "channels last"])
@pytest.mark.parametrize("name", REWRITTEN)
def test_an_architecture_is_compiled_with_the_rewrites_for_a_card(tmp_path, name, layout):
    """As for a card, but with kernels for the processor: the rewrites and lowerings are ours."""
    command = [sys.executable, "-c", WITH_REWRITES, str(Path(__file__).parent), name, layout, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "chains of arithmetic per channel" in done.stdout


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.skipif(not torch.cuda.is_available(), reason="There is no CUDA device.")
@pytest.mark.parametrize("name", ON_CARD)
def test_an_architecture_reaches_compiled_code_on_a_card_under_autocast(tmp_path, name):
    torch.manual_seed(0)
    case = CASES[name]
    model, inputs = case.make(), case.inputs()
    eager = copy.deepcopy(model).cuda()
    trainer = pilotage.training(
        model, case.optimizer(model.parameters()), backend="cuda", tier="compiled", cache_directory=tmp_path
    )
    with torch.autocast("cuda", torch.bfloat16):
        loss = trainer(*inputs)
        expected = eager(*(each.cuda() for each in inputs))
    assert trainer.record.latest_tier == "compiled"
    if not trainer._executor.session.captured.draws_random_numbers:
        torch.testing.assert_close(loss.float(), expected.detach().float().cpu(), rtol=5e-2, atol=5e-2)
