"""Submodules of a wrapped model, and parameters with a copy for each group of replicas."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

import poptorch
from poptorch import CommGroupType, VariableRetrievalMode

pytestmark = pytest.mark.slow


class Scale(nn.Module):
    def __init__(self, values) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.as_tensor(values))

    def forward(self, x):
        return x * self.weight


class Net(nn.Module):
    """A shared layer, followed by one with its own weights for each replica."""

    def __init__(self, values) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.parts = nn.ModuleList([Scale(values), nn.ReLU()])
        self.list = nn.ParameterList([nn.Parameter(torch.zeros(2))])

    def forward(self, x):
        y = self.parts[0](self.layer(x) + self.list[0])
        return y, functional.mse_loss(y, torch.ones_like(y))


FOUR = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]


def options(replicas):
    chosen = poptorch.Options().replicationFactor(replicas)
    return chosen.outputMode(poptorch.OutputMode.All)


@pytest.mark.parametrize(
    ("kind", "shards", "values", "of_replica"),
    [
        (CommGroupType.NoGrouping, 0, FOUR, [0, 1, 2, 3]),
        (CommGroupType.Consecutive, 2, FOUR[:2], [0, 0, 1, 1]),
        (CommGroupType.Orthogonal, 2, FOUR[:2], [0, 1, 0, 1]),
        (CommGroupType.All, 4, FOUR[:1], [0, 0, 0, 0]),
        (CommGroupType.Consecutive, 1, FOUR, [0, 1, 2, 3]),
    ],
)
@pytest.mark.parametrize("strategy", poptorch.MeanReductionStrategy)
def test_each_group_of_replicas_trains_its_own_slice_of_a_parameter(kind, shards, values, of_replica, strategy):
    torch.manual_seed(0)
    module, plain = Net(values), Net(values)
    plain.load_state_dict(module.state_dict())
    x = torch.randn(4, 2)
    chosen = options(4)
    chosen.Training.setMeanAccumulationAndReplicationReductionStrategy(strategy)
    model = poptorch.trainingModel(module, chosen, torch.optim.SGD(module.parameters(), lr=0.1))
    model.parts[0].weight.replicaGrouping(kind, shards, VariableRetrievalMode.OnePerGroup)
    outputs, losses = model(x)

    total, parts = 0, []
    for replica, group in enumerate(of_replica):
        hidden = plain.layer(x[replica : replica + 1]) + plain.list[0]
        parts.append(hidden * plain.parts[0].weight[group])
        total = total + functional.mse_loss(parts[-1], torch.ones_like(parts[-1]))
    total.backward()
    torch.testing.assert_close(outputs, torch.cat(parts).detach())
    assert losses.shape == (4,)
    with torch.no_grad():
        for name, parameter in plain.named_parameters():
            # Gradients of shared parameters are averaged over all replicas, those of grouped ones over the group.
            share = len(values) / 4 if name == "parts.0.weight" else 1 / 4
            parameter -= 0.1 * share * parameter.grad
    torch.testing.assert_close(dict(module.state_dict()), dict(plain.state_dict()))


@pytest.mark.parametrize(
    "reach",
    [
        lambda model: model.parts[0].weight,
        lambda model: next(iter(model.parts)).weight,
        lambda model: model.get_parameter("parts.0.weight"),
        lambda model: model.get_submodule("parts.0").weight,
    ],
)
def test_a_parameter_of_a_submodule_is_found_by_every_usual_way(reach):
    model = poptorch.inferenceModel(Net(FOUR), options(4))
    reach(model).replicaGrouping(CommGroupType.NoGrouping, 0, VariableRetrievalMode.AllReplicas)
    outputs, _ = model(torch.ones(4, 2))
    torch.testing.assert_close(outputs / outputs[0], torch.tensor(FOUR) / torch.tensor(FOUR[0]))


def test_entries_of_a_parameter_list_can_be_grouped_too():
    module = Net(FOUR[0])
    module.list[0] = nn.Parameter(torch.tensor([[0.0, 0.0], [10.0, 10.0]]))
    model = poptorch.inferenceModel(module, options(2))
    model.list[0].replicaGrouping(CommGroupType.NoGrouping, 0, VariableRetrievalMode.OnePerGroup)
    outputs, _ = model(torch.zeros(2, 2))
    torch.testing.assert_close(outputs[1] - outputs[0], 10 * torch.tensor(FOUR[0]))


def test_a_shared_parameter_is_grouped_under_either_name():
    module = Net(FOUR)
    module.tied = Scale(FOUR)
    module.tied.weight = module.parts[0].weight
    model = poptorch.inferenceModel(module, options(4))
    model.tied.weight.replicaGrouping(CommGroupType.NoGrouping, 0)
    outputs, _ = model(torch.ones(4, 2))
    torch.testing.assert_close(outputs / outputs[0], torch.tensor(FOUR) / torch.tensor(FOUR[0]))


@pytest.mark.parametrize(
    ("values", "call", "words"),
    [
        (1.0, (CommGroupType.NoGrouping, 0), "Scalars cannot be passed as per-replica weight tensor values"),
        (FOUR, (CommGroupType.Consecutive, 2, VariableRetrievalMode.AllReplicas), "OnePerGroup"),
    ],
)
def test_parameters_that_cannot_be_grouped_are_refused(values, call, words):
    model = poptorch.inferenceModel(Net(values), options(4))
    with pytest.raises(poptorch.Error, match=words):
        model.parts[0].weight.replicaGrouping(*call)


@pytest.mark.parametrize(("kind", "shards"), [(CommGroupType.Consecutive, 3), (CommGroupType.Consecutive, 2)])
def test_groups_that_do_not_fit_the_replicas_or_the_tensor_are_refused(kind, shards):
    model = poptorch.inferenceModel(Net(FOUR), options(4))
    with pytest.raises(ValueError, match=r"evenly|leading dimension"):
        model.parts[0].weight.replicaGrouping(kind, shards)


def test_replicas_are_grouped_before_compilation():
    model = poptorch.inferenceModel(Scale([[1.0], [2.0]]), options(2))
    weight = model.weight
    weight.replicaGrouping(CommGroupType.NoGrouping, 0)
    assert model(torch.ones(2, 1)).tolist() == [[1.0], [2.0]]
    with pytest.raises(ValueError, match="compiled"):
        weight.replicaGrouping(CommGroupType.NoGrouping, 0)


def test_a_proxy_of_a_submodule_behaves_like_the_submodule():
    module = Net(FOUR)
    model = poptorch.inferenceModel(module, options(4))
    layer = model.layer
    assert isinstance(layer, nn.Linear)
    assert not isinstance(layer, nn.Conv2d)
    assert repr(layer) == repr(module.layer)
    assert "in_features" in dir(layer)
    assert len(model.parts) == 2
    assert torch.equal(layer(torch.ones(1, 2)), module.layer(torch.ones(1, 2)))
    layer.note = "mine"
    assert module.layer.note == "mine"
    del layer.note
    assert not hasattr(module.layer, "note")
    model.parts[1] = nn.Tanh()
    assert isinstance(module.parts[1], nn.Tanh)


def test_a_copy_of_a_proxy_is_a_plain_module():
    module = Net(FOUR)
    copied = copy.deepcopy(poptorch.inferenceModel(module, options(4)).layer)
    assert type(copied) is nn.Linear
    assert torch.equal(copied.weight, module.layer.weight)
    assert copied.weight is not module.layer.weight


def test_submodules_are_not_wrapped_if_nothing_can_be_grouped():
    module = Net(FOUR[0])
    alone, compiled = poptorch.inferenceModel(module), poptorch.inferenceModel(module, options(2))
    compiled.compile(torch.ones(2, 2))
    assert alone.layer is module.layer
    assert compiled.layer is module.layer
