"""Anchors: inner values that a program returns."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.errors import CaptureError
from pilotage.optim.reading import read_optimizer
from pilotage.options.batching import Batching
from pilotage.options.choices import OutputMode, Tier
from pilotage.options.execution import Execution
from pilotage.passes.anchors import tensor_names
from pilotage.runtime.executor import Executor
from pilotage.storage.program_text import program_from_data, program_to_data


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.register_buffer("count", torch.zeros(2))

    def forward(self, x, y):
        self.count += 1
        output = self.layer(x).relu_()
        return output, 5 * functional.mse_loss(output, y)


def executor_of(module, *anchors, accumulation=1, tier=None):
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    plan = read_optimizer(torch.optim.SGD(module.parameters(), lr=0.1), names)
    batching = Batching(gradient_accumulation=accumulation)
    execution = Execution(anchors=anchors, batching=batching, outputs=OutputMode.ALL, tier=tier)
    return Executor(module, execution=execution, plan=plan)


@pytest.fixture
def batch():
    torch.manual_seed(1)
    return torch.randn(4, 3), torch.randn(4, 2)


def test_every_value_that_can_be_anchored_has_a_name(batch):
    executor = executor_of(Network())
    executor.compile(*batch)
    names = tensor_names(executor.session.program)
    assert names[:5] == ["layer.weight", "layer.bias", "count", "input 0", "input 1"]
    assert {"loss", "gradient of layer.weight", "updated layer.bias", "addmm", "relu_"} <= set(names)
    assert len(names) == len(set(names))


def test_anchors_follow_the_outputs_and_equal_eager(batch, assert_equal):
    torch.manual_seed(0)
    module = Network()
    plain = Network()
    plain.load_state_dict(module.state_dict())
    anchors = (
        "loss",
        "gradient of layer.weight",
        "layer.weight",
        "updated layer.weight",
        "addmm",
        "input 1",
        "count",
        "updated layer.bias",
    )
    executor = executor_of(module, *anchors)
    outputs = executor.run(executor.bind(*batch))
    before = plain.layer.weight.detach().clone()
    hidden = plain.layer(batch[0])
    loss = 5 * functional.mse_loss(hidden.relu(), batch[1])
    loss.backward()
    torch.optim.SGD(plain.parameters(), lr=0.1).step()
    assert len(outputs) == 2 + len(anchors)
    assert_equal(
        outputs[2:],
        [
            loss.detach(),
            plain.layer.weight.grad,
            before,
            plain.layer.weight.detach(),
            hidden.detach(),
            batch[1],
            torch.zeros(2),
            plain.layer.bias.detach(),
        ],
    )
    assert executor.session.program.output_ranks == (2, 0, 0, 2, 2, 2, 2, 2, 1, 1)


def test_anchors_do_not_change_other_outputs(batch, assert_same_state):
    torch.manual_seed(0)
    module, other = Network(), Network()
    other.load_state_dict(module.state_dict())
    executor_of(module, "gradient of layer.weight", "addmm")(*batch)
    executor_of(other)(*batch)
    assert_same_state(module, other)


def test_anchors_of_pooled_programs_are_those_of_each_micro_batch(batch, assert_equal):
    torch.manual_seed(0)
    module = Network()
    executor = executor_of(module, "gradient of layer.bias", "loss", accumulation=2)
    plain = Network()
    plain.load_state_dict(module.state_dict())
    *_, gradients, losses = executor.run(executor.bind(*batch))
    assert losses.shape == (2,)
    for position in range(2):
        x, y = (tensor[2 * position : 2 * position + 2] for tensor in batch)
        plain.zero_grad()
        (5 * functional.mse_loss(plain.layer(x).relu(), y)).backward()
        assert_equal(gradients[2 * position : 2 * position + 2], plain.layer.bias.grad)
    with pytest.raises(CaptureError, match=r"no tensor named 'updated layer\.bias'"):
        executor_of(Network(), "updated layer.bias", accumulation=2).compile(*batch)


def test_an_unknown_name_is_refused_with_the_closest_names(batch):
    executor = executor_of(Network())
    executor.compile(*batch)
    count = len(tensor_names(executor.session.program))
    with pytest.raises(CaptureError, match=rf"The closest of its {count} names are: layer\.weight, ") as refused:
        executor_of(Network(), "layer.wait").compile(*batch)
    assert str(refused.value).count(", ") == 4


def test_anchors_are_refused_in_the_eager_tier(batch):
    with pytest.raises(CaptureError, match="eager tier"):
        executor_of(Network(), "loss", tier=Tier.EAGER).compile(*batch)


def test_an_operation_with_several_results_cannot_be_anchored():
    step = pilotage.inference(nn.BatchNorm1d(3))
    step.compile(torch.ones(2, 3))
    (name,) = (name for name in tensor_names(step._executor.session.program) if "batch_norm" in name)
    with pytest.raises(CaptureError, match="not a single tensor"):
        Executor(nn.BatchNorm1d(3), execution=Execution(anchors=(name,))).compile(torch.ones(2, 3))


def test_labels_and_anchors_are_stored_in_a_file(batch):
    executor = executor_of(Network(), "loss")
    executor.compile(*batch)
    program = executor.session.program
    again = program_from_data(*program_to_data(program))
    assert (again.anchors, again.output_ranks) == (program.anchors, program.output_ranks)
    assert tensor_names(again) == tensor_names(program)
