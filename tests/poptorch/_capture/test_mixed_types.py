"""Half-precision activations with float32 weights, and the reverse."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

import poptorch

HALF, FLOAT = torch.float16, torch.float32
WIDE_INPUTS = pytest.param(HALF, FLOAT, marks=pytest.mark.long)


class Calling(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *given):
        return self.function(*given)


def run(function, *given, tier=None):
    return poptorch.inferenceModel(Calling(function), poptorch.Options().runOn("cpu", tier=tier))(*given)


def random(*shape, dtype=FLOAT):
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype)


LAYERS = {
    "linear": (lambda: nn.Linear(4, 3), (2, 4)),
    "linear on a vector": (lambda: nn.Linear(4, 3), (4,)),
    "conv1d": (lambda: nn.Conv1d(4, 3, 2), (2, 4, 5)),
    "conv2d": (lambda: nn.Conv2d(4, 3, 2), (2, 4, 5, 5)),
    "conv3d": (lambda: nn.Conv3d(4, 3, 2), (2, 4, 3, 3, 3)),
    "transposed": (lambda: nn.ConvTranspose2d(4, 3, 2), (2, 4, 5, 5)),
    "batch norm": (lambda: nn.BatchNorm2d(4), (2, 4, 5, 5)),
    "layer norm": (lambda: nn.LayerNorm(4), (2, 4)),
    "group norm": (lambda: nn.GroupNorm(2, 4), (2, 4, 5)),
    "instance norm": (lambda: nn.InstanceNorm1d(4, affine=True, track_running_stats=True), (2, 4, 5)),
    "prelu": (lambda: nn.PReLU(4), (2, 4)),
    "attention": (lambda: nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0), (3, 2, 4)),
}


@pytest.mark.parametrize(("weights", "given"), [(FLOAT, HALF), WIDE_INPUTS])
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_computes_in_the_type_of_its_input(name, weights, given):
    make, shape = LAYERS[name]
    torch.manual_seed(0)
    layer = make().to(weights)
    x = random(*shape, dtype=given)
    expected = copy.deepcopy(layer).float()(x.float())
    result = poptorch.inferenceModel(layer)(x)
    assert result.dtype == given
    torch.testing.assert_close(result.float(), expected.detach(), rtol=0.02, atol=0.02)
    assert {tensor.dtype for tensor in layer.parameters()} == {weights}


@pytest.mark.parametrize("statistics", [HALF, FLOAT])
def test_running_statistics_keep_their_type(statistics):
    norm = nn.BatchNorm1d(3).half()
    norm.running_mean, norm.running_var = norm.running_mean.to(statistics), norm.running_var.to(statistics)
    twin = copy.deepcopy(norm).float()
    model = poptorch.inferenceModel(norm)
    for dtype in (HALF, FLOAT):
        x = random(8, 3, dtype=dtype)
        twin(x.float())
        assert model(x).dtype == dtype
        model.copyWeightsToHost()
        assert norm.running_mean.dtype == norm.running_var.dtype == statistics
        torch.testing.assert_close(norm.running_mean.float(), twin.running_mean, rtol=0.01, atol=0.01)
        torch.testing.assert_close(norm.running_var.float(), twin.running_var, rtol=0.01, atol=0.01)
        model.destroy()


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize(("weights", "given"), [(FLOAT, HALF), WIDE_INPUTS])
def test_recurrent_networks_compute_in_the_wider_type(kind, weights, given):
    torch.manual_seed(0)
    layer = kind(4, 3).to(weights)
    x = random(5, 2, 4, dtype=given)
    outputs, _ = poptorch.inferenceModel(layer)(x)
    assert outputs.dtype == FLOAT
    torch.testing.assert_close(outputs, copy.deepcopy(layer).float()(x.float())[0].detach())
    if weights is FLOAT:
        with pytest.raises(ValueError, match="does not match weight dtype"):
            layer(x)


A, B, V = random(3, 4), random(4, 5), random(4)


@pytest.mark.parametrize(
    ("function", "first", "second", "expected"),
    [
        (torch.matmul, A, B, "first"),
        (lambda a, b: a @ b, A, B, "first"),
        (torch.mm, A, B, "first"),
        (torch.bmm, A[None], B[None], "first"),
        (torch.mv, A, V, "second"),
        (torch.matmul, A, V, "second"),
        (torch.dot, V, V, "first"),
        (lambda a, b: torch.einsum("ij,jk->ik", a, b), A, B, "first"),
        (lambda a, b: torch.addmm(torch.zeros(5), a, b), A, B, "first"),
        (lambda a, b: torch.baddbmm(torch.zeros(3, 5), a, b), A[None], B[None], "second"),
        (lambda a, b: functional.scaled_dot_product_attention(a, b, b), A[None], A[None], "first"),
    ],
)
@pytest.mark.parametrize("types", [(HALF, FLOAT), (FLOAT, HALF)])
def test_products_have_the_type_of_one_operand(function, first, second, expected, types):
    first, second = first.to(types[0]), second.to(types[1])
    result = run(function, first, second)
    assert result.dtype == (types[0] if expected == "first" else types[1])
    torch.testing.assert_close(result.float(), function(first.float(), second.float()), rtol=0.01, atol=0.01)


@pytest.mark.parametrize("types", [(HALF, FLOAT), (FLOAT, HALF)])
@pytest.mark.parametrize(
    "function",
    [
        torch.add,
        torch.mul,
        torch.div,
        torch.maximum,
        torch.atan2,
        lambda a, b: torch.cat([a, b]),
        lambda a, b: torch.where(a > 0, a, b),
        functional.mse_loss,
        functional.l1_loss,
        functional.smooth_l1_loss,
        lambda a, b: functional.binary_cross_entropy(a.sigmoid(), b.sigmoid()),
        lambda a, b: functional.kl_div(a, b.sigmoid(), reduction="sum"),
    ],
)
def test_other_functions_promote_as_torch_does(function, types):
    a, b = random(3, 4, dtype=types[0]), random(3, 4, dtype=types[1])
    result = run(function, a, b)
    assert result.dtype == FLOAT
    torch.testing.assert_close(result, function(a.float(), b.float()), rtol=0.01, atol=0.01)


@pytest.mark.parametrize("function", [functional.cross_entropy, lambda x, y: functional.nll_loss(x.log_softmax(1), y)])
def test_a_loss_of_half_scores_is_half(function):
    x, y = random(3, 4, dtype=HALF), torch.tensor([0, 3, 1])
    result = run(lambda x, y: (function(x, y), functional.cross_entropy(x, y, torch.ones(4))), x, y)
    assert [each.dtype for each in result] == [HALF, HALF]
    torch.testing.assert_close(result[0].float(), functional.cross_entropy(x.float(), y), rtol=0.01, atol=0.01)


def test_what_is_written_keeps_its_type():
    def write(x, y):
        z = x.clone()
        z += y
        z[0] = y[0]
        z[torch.tensor([1, 2])] = y[1:]
        return z.index_add_(0, torch.tensor([0]), y[:1])

    x, y = random(3, 4, dtype=HALF), random(3, 4)
    result = run(write, x, y)
    assert result.dtype == HALF
    torch.testing.assert_close(result.float(), torch.cat([2 * y[:1], y[1:]]), rtol=0.01, atol=0.01)


def test_numbers_do_not_promote_and_created_tensors_have_the_requested_type(tier):
    def create(x):
        return x + 5, x + torch.ones(4), x + torch.ones(4, dtype=HALF), torch.zeros_like(x) + 1.5, x.float() + x

    results = run(create, random(3, 4, dtype=HALF), tier=tier)
    assert [each.dtype for each in results] == [HALF, FLOAT, HALF, HALF, FLOAT]


@pytest.mark.parametrize("tier", ["graph", "eager"])
def test_float32_weights_are_master_weights_of_a_half_model(tier):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(10, 10)

        def forward(self, x, y):
            result = self.layer(x)
            return result, functional.mse_loss(result, y)

    torch.manual_seed(1)
    model = Model()
    options = poptorch.Options().deviceIterations(50).runOn("cpu", tier=tier)
    train = poptorch.trainingModel(model, options, poptorch.optim.SGD(model.parameters(), lr=0.01))
    x, y = random(1, 10, dtype=HALF), random(1, 10, dtype=HALF)
    losses = [train(x.repeat(50, 1), y.repeat(50, 1))[1] for _ in range(50 if tier == "graph" else 2)]
    assert losses[-1].dtype == HALF
    assert losses[-1] < (1e-3 if tier == "graph" else losses[0])
    assert model.layer.weight.dtype == FLOAT
    # A step of the size of half a rounding error would be lost in half precision.
    assert not torch.equal(model.layer.weight, model.layer.weight.half().float())


def log_probabilities():
    return random(6, 2, 4).log_softmax(2), torch.tensor([[1, 2], [3, 1]]), torch.tensor([6, 5]), torch.tensor([2, 2])


WITHOUT_HALF_KERNELS = {
    "ctc loss": (functional.ctc_loss, log_probabilities),
    "ctc loss of torch": (torch.ctc_loss, log_probabilities),
    "distances": (torch.cdist, lambda: (random(3, 4), random(5, 4))),
    "distances of rows": (functional.pdist, lambda: (random(3, 4),)),
    "average pooling in three dimensions": (lambda x: functional.avg_pool3d(x, 2), lambda: (random(1, 2, 4, 4, 4),)),
    "margins": (functional.multi_margin_loss, lambda: (random(2, 4), torch.tensor([1, 3]))),
    "margins of several labels": (
        functional.multilabel_margin_loss,
        lambda: (random(2, 4), torch.tensor([[1, 3, -1, 0], [0, -1, 1, 2]])),
    ),
}


@pytest.mark.parametrize("name", WITHOUT_HALF_KERNELS)
def test_functions_without_a_half_kernel_compute_in_float_and_return_half(name):
    function, make = WITHOUT_HALF_KERNELS[name]
    given = [tensor.half() if tensor.is_floating_point() else tensor for tensor in make()]
    wide = [tensor.float() if tensor.is_floating_point() else tensor for tensor in given]
    result = run(function, *given)
    assert result.dtype == HALF
    torch.testing.assert_close(result, function(*wide).half())
    assert run(function, *wide).dtype == FLOAT


def test_distances_of_mixed_types_are_float():
    near, far = random(3, 4, dtype=HALF), random(5, 4)
    torch.testing.assert_close(run(torch.cdist, near, far), torch.cdist(near.float(), far))


def test_a_half_ctc_loss_trains():
    torch.manual_seed(0)

    class Speech(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x, *targets):
            return functional.ctc_loss(self.layer(x).log_softmax(2), *targets)

    model, (_, *targets) = Speech(), log_probabilities()
    twin, x = copy.deepcopy(model), random(6, 2, 4, dtype=HALF)
    training = poptorch.trainingModel(model, optimizer=poptorch.optim.SGD(model.parameters(), lr=1.0))
    loss = training(x, *targets)
    expected = twin(x.float(), *targets)
    expected.backward()
    torch.testing.assert_close(loss.float(), expected.detach(), rtol=0.01, atol=0.01)
    moved = twin.layer.weight.detach() - twin.layer.weight.grad
    torch.testing.assert_close(model.layer.weight.detach(), moved, rtol=0.01, atol=0.01)
