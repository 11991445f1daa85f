"""Models of torchvision and transformers, if installed, on the best available device.

torchvision does not import beside a CPU build of torch, so on most development machines this is skipped.
"""

import copy
import importlib
import subprocess
import sys

import pytest
import torch
from torch import nn

import poptorch
from pilotage.devices.registry import choose

IMAGES = (2, 3, 64, 64)
TOKENS = (2, 16)
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 97}

VISION = {
    "resnet18": {},
    "mobilenet_v3_small": {},
    "efficientnet_b0": {},
    "convnext_tiny": {},
    "densenet121": {},
    "squeezenet1_1": {},
    "vit_b_16": {"image_size": 64},
    "swin_t": {},
}
LANGUAGE = {
    "Bert": SMALL,
    "DistilBert": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "vocab_size": 97},
    "GPT2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 97, "n_positions": 32},
    "Roberta": SMALL,
    "Electra": {**SMALL, "embedding_size": 32},
    "Albert": {**SMALL, "embedding_size": 16},
}


def module_of(name):
    try:
        return importlib.import_module(name)
    except Exception as error:
        # Only if it is not our doing: without us it cannot be imported either.
        alone = subprocess.run([sys.executable, "-c", f"import {name}"], capture_output=True, check=False)
        if alone.returncode == 0:
            raise
        pytest.skip(f"{name} cannot be imported here: {error}")


class WithLoss(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, inputs, labels=None):
        outputs = self.model(inputs)
        scores = outputs if isinstance(outputs, torch.Tensor) else outputs[0].mean(1)
        if labels is None:
            return scores
        return scores, nn.functional.cross_entropy(scores, labels)


def compare(model, inputs):
    """Inference and two training steps, compared with eager PyTorch on the same device."""
    device = choose().capabilities.device
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    model = WithLoss(model).eval()
    eager = copy.deepcopy(model).to(device)
    options = poptorch.Options().showCompilationProgressBar(False)
    scores = poptorch.inferenceModel(model, options)(inputs)
    with torch.no_grad():
        torch.testing.assert_close(scores, eager(inputs.to(device)).cpu(), rtol=1e-3, atol=1e-4)
    labels = torch.arange(len(inputs)) % scores.shape[1]
    training = poptorch.trainingModel(model, options, poptorch.optim.SGD(model.parameters(), lr=0.01))
    optimizer = torch.optim.SGD(eager.parameters(), lr=0.01)
    for _ in range(2):
        _, loss = training(inputs, labels)
        optimizer.zero_grad()
        _, expected = eager(inputs.to(device), labels.to(device))
        expected.backward()
        optimizer.step()
        torch.testing.assert_close(loss, expected.detach().cpu(), rtol=1e-3, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", VISION)
def test_a_vision_model_runs_as_it_does_in_eager_pytorch(name):
    torch.manual_seed(0)
    models = module_of("torchvision.models")
    compare(getattr(models, name)(num_classes=10, **VISION[name]), torch.randn(IMAGES))


@pytest.mark.slow
@pytest.mark.parametrize("name", LANGUAGE)
def test_a_language_model_runs_as_it_does_in_eager_pytorch(name):
    torch.manual_seed(0)
    transformers = module_of("transformers")
    configuration = getattr(transformers, f"{name}Config")(**LANGUAGE[name])
    compare(getattr(transformers, f"{name}Model")(configuration), torch.randint(5, 90, TOKENS))
