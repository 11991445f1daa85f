"""What forward may not do to the state of its module."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import poptorch
from poptorch._checks.buffers import check_buffer_names, check_buffer_types


class Stateful(nn.Module):
    def __init__(self, change=lambda self: None):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.register_buffer("y", torch.zeros(2))
        self.change = change

    def forward(self, x):
        self.change(self)
        return self.layer(x) + self.y


class Outer(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)


def reassign(self):
    self.y = self.y + 1


def remove(self):
    del self._buffers["y"]
    self.__dict__["y"] = torch.zeros(2)


def replace_parameter(self):
    self.layer.weight = nn.Parameter(self.layer.weight * 2)


def remove_parameter(self):
    self.layer.bias = None


X = torch.ones(1, 2)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            reassign,
            r"Buffer y is reassigned within the model when calling the forward method\. This is not supported\. "
            r"Consider "
            r"using self\.y\.copy_\(src\)",
        ),
        (remove, r"Buffer y is removed from the model when calling the forward method\."),
        (
            replace_parameter,
            r"Parameter layer\.weight is reassigned within the model when calling the forward method\. This is not "
            "supported",
        ),
        (remove_parameter, r"Parameter layer\.bias is removed from the model when calling the forward method\."),
    ],
)
def test_replaced_or_removed_state_is_refused_and_restored(change, said, tier):
    module = Stateful(change)
    before = {name: id(tensor) for name, tensor in module.state_dict(keep_vars=True).items()}
    with pytest.raises(poptorch.Error, match=said):
        poptorch.inferenceModel(module, poptorch.Options().runOn("cpu", tier=tier))(X)
    assert {name: id(tensor) for name, tensor in module.state_dict(keep_vars=True).items()} == before
    assert module.y.tolist() == [0.0, 0.0]


def test_a_buffer_of_a_submodule_is_named_with_its_path():
    with pytest.raises(poptorch.Error, match=r"Buffer inner\.y is reassigned.*self\.y\.copy_\(src\)"):
        poptorch.inferenceModel(Outer(Stateful(reassign)))(X)


def test_a_written_buffer_is_part_of_the_program():
    module = Stateful(lambda self: self.y.copy_(self.y + 1))
    model = poptorch.inferenceModel(module)
    plain = module.layer(X).detach()
    for expected in (1.0, 2.0, 3.0):
        torch.testing.assert_close(model(X), plain + expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("norm", [nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d])
def test_batch_norm_may_update_its_buffers(norm):
    class Replacing(norm):
        def forward(self, x):
            self.num_batches_tracked = self.num_batches_tracked + 1
            return super().forward(x)

    dimensions = {nn.BatchNorm1d: 2, nn.BatchNorm2d: 4, nn.BatchNorm3d: 5}[norm]
    module = Replacing(2)
    model = poptorch.inferenceModel(module)
    for _ in range(2):
        model(torch.randn(3, 2, *[2] * (dimensions - 2)))
    model.copyWeightsToHost()
    assert module.num_batches_tracked.item() == 4


class HandWrittenNorm(nn.Module):
    """Writes its statistics itself, through a view if asked to."""

    def __init__(self, *, dtype=torch.float32, through_view=False):
        super().__init__()
        self.through_view = through_view
        self.register_buffer("mean", torch.zeros(1, 2, dtype=dtype))

    def forward(self, x):
        target = self.mean[0] if self.through_view else self.mean
        target.add_(x.sum(0).to(self.mean.dtype))
        return x + self.mean


def spread(module, *, replicas=2, group=1, broadcast=True, tier=None):
    options = poptorch.Options().replicationFactor(replicas).broadcastBuffers(broadcast).runOn("cpu", tier=tier)
    if group > 1:
        options.inputReplicaGrouping(group, poptorch.CommGroupType.Consecutive)
    return poptorch.inferenceModel(module, options)


@pytest.mark.parametrize("through_view", [False, True])
def test_replicas_may_not_write_a_floating_point_buffer_that_is_broadcast(through_view, tier):
    words = (
        r"PopTorch does not support broadcasting buffers\. If your model is able to tolerate buffers becoming out of "
        r"sync between replicas, you can disable buffer broadcasting using "
        r"poptorch\.Options\.broadcastBuffers\(False\)\. forward writes to mean"
    )
    with pytest.raises(poptorch.Error, match=words):
        spread(HandWrittenNorm(through_view=through_view), tier=tier)(torch.ones(2, 2))


def test_without_broadcasting_each_replica_counts_on_from_the_same_start(tier):
    model = spread(HandWrittenNorm(), broadcast=False, tier=tier)
    given = torch.tensor([[9.0, 9.0], [2.0, 2.0]])
    for _ in range(49):
        model(given)
    torch.testing.assert_close(model(given) - given, torch.tensor([[450.0, 450.0], [100.0, 100.0]]))


def test_replicas_that_read_the_same_data_may_write_their_buffers():
    model = spread(HandWrittenNorm(), group=2)
    for count in (1.0, 2.0):
        torch.testing.assert_close(model(torch.ones(1, 2)), torch.full((2, 2), 1.0 + count))


@pytest.mark.parametrize("dtype", [torch.int32, torch.bool])
def test_buffers_of_whole_numbers_may_be_written(dtype):
    spread(HandWrittenNorm(dtype=dtype))(torch.ones(2, 2))


def test_the_statistics_of_batch_normalisation_may_differ_between_replicas(tier):
    module = nn.Sequential(nn.BatchNorm1d(2))
    twin = copy.deepcopy(module)
    model = spread(module, tier=tier)
    batches = torch.randn(3, 8, 2)
    for batch in batches:
        twin(batch[:4])
        model(batch)
    model.copyWeightsToHost()
    torch.testing.assert_close(dict(module.state_dict()), dict(twin.state_dict()))


def test_names_of_buffers_are_checked_against_the_module():
    module = Outer(Stateful())
    check_buffer_names(module, ["inner.y"])
    with pytest.raises(poptorch.Error, match=r"'y'.*Its buffers are: inner\.y"):
        check_buffer_names(module, ["inner.y", "y"])
    with pytest.raises(poptorch.Error, match="Its buffers are: none"):
        check_buffer_names(nn.Linear(1, 1), ["y"])


def test_buffers_are_plain_tensors_even_while_another_model_trains_them():
    module = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))

    class Loss(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = module

        def forward(self, x):
            return poptorch.identity_loss(self.part(x), "sum")

    trainer = poptorch.trainingModel(Loss())
    trainer(torch.randn(4, 2))
    check_buffer_types(module)
