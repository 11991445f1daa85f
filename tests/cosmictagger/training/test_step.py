"""The step under torch.compile."""

from dataclasses import replace

import pytest
import torch

from cosmictagger.configuration.choices import LossBalanceScheme
from cosmictagger.configuration.network import A21
from cosmictagger.networks.uresnet import UResNet, build
from cosmictagger.training.step import TrainingStep

TINY = replace(A21, depth=1, bottleneck_deepest=8, blocks_per_layer=1, blocks_deepest_layer=1)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*")
@pytest.mark.parametrize("kind", [build, pytest.param(UResNet, marks=pytest.mark.long)])
def test_a_compiled_step_has_the_gradient_of_an_eager_one(kind):
    def gradient(compiled):
        torch.manual_seed(0)
        image, label = torch.rand(1, 3, 16, 16), torch.randint(0, 3, (1, 3, 16, 16), dtype=torch.uint8)
        image = image.contiguous(memory_format=torch.channels_last)
        step = TrainingStep(kind(TINY), LossBalanceScheme.focal).train()
        _, loss = (torch.compile(step) if compiled else step)(image, label)
        loss.backward()
        return torch.cat([each.grad.flatten() for each in step.parameters()])

    found, wanted = gradient(compiled=True), gradient(compiled=False)
    assert (found - wanted).norm() <= 1e-4 * wanted.norm()
