from __future__ import annotations

import torch
from torch import nn

import poptorch


def twice(x):
    return 2 * x


class InBlocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.twice = poptorch.BeginBlock(twice, "first", 0)

    @poptorch.BlockFunction(user_id="second", ipu_id=0)
    def second(self, x):
        out = self.layer(x)
        return out, poptorch.identity_loss(out, "sum")

    def forward(self, x):
        return self.second(self.twice(x))


def test_a_wrapped_model_with_blocks_can_be_saved_and_trained_on(tmp_path):
    module = InBlocks()
    options = poptorch.Options().setExecutionStrategy(poptorch.ShardedExecution(poptorch.AutoStage.SameAsIpu))
    model = poptorch.trainingModel(module, options, poptorch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9))
    x = torch.ones(3, 2)
    model(x)
    torch.save(model, tmp_path / "model.pt")
    again = torch.load(tmp_path / "model.pt", weights_only=False)
    assert torch.equal(again.model.layer.weight, module.layer.weight)
    for each in (model, again):
        each(x)
    torch.testing.assert_close(again.model.layer.weight, module.layer.weight)
    block = torch.load(tmp_path / "model.pt", weights_only=False).model.twice
    assert (block._user_id, block._ipu_id) == ("first", 0)


def test_an_inference_model_can_be_saved(tmp_path):
    model = poptorch.inferenceModel(nn.Linear(2, 2), poptorch.Options().deviceIterations(2))
    x = torch.ones(2, 2)
    expected = model(x)
    torch.save(model, tmp_path / "model.pt")
    again = torch.load(tmp_path / "model.pt", weights_only=False)
    assert again.options.device_iterations == 2
    assert torch.equal(again(x), expected)
