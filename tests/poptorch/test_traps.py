"""The fifteen mistakes that a first implementation of PopTorch makes, one test each."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import TensorDataset

import poptorch
from pilotage.errors import LostModelError
from poptorch import OutputMode

X, Y = torch.linspace(-1, 1, 12).reshape(4, 3) ** 3, torch.linspace(0, 1, 8).reshape(4, 2)


class Network(nn.Module):
    """A layer whose loss may be changed after it was computed."""

    def __init__(self, finish=lambda loss: loss):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(3, 2)
        self.finish = finish

    def forward(self, x, y=None):
        out = self.layer(x)
        return out if y is None else (out, self.finish(functional.mse_loss(out, y)))


def options(**settings):
    made = poptorch.Options().showCompilationProgressBar(False)
    for name, value in settings.items():
        getattr(made, name)(value)
    return made


def training(module, made=None, lr=0.1):
    return poptorch.trainingModel(module, made or options(), optimizer=poptorch.optim.SGD(module.parameters(), lr=lr))


def after_one_step(finish):
    module = Network(finish)
    training(module)(X, Y)
    return module.layer.weight.detach().clone()


def test_trap_01_the_root_is_the_loss_operation_and_not_the_returned_value():
    plain = after_one_step(lambda loss: loss)
    assert torch.equal(after_one_step(lambda loss: 5 * loss), plain)
    marked = after_one_step(lambda loss: poptorch.identity_loss(5 * loss, "none"))
    start = Network().layer.weight.detach()
    torch.testing.assert_close(marked - start, 5 * (plain - start), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("mode", "period", "multiplier"),
    [
        (OutputMode.All, None, 4 * 3 * 2),
        (OutputMode.EveryN, 2, 2 * 3 * 2),
        (OutputMode.EveryN, 3, 1 * 3 * 2),
        (OutputMode.Final, None, 2),
        (OutputMode.Sum, None, 2),
    ],
)
def test_trap_02_the_first_dimension_of_outputs_follows_the_mode(mode, period, multiplier):
    made = options(deviceIterations=4, replicationFactor=2).outputMode(mode, period)
    made.Training.gradientAccumulation(3)
    out, loss = training(Network(), made)(torch.ones(4 * 3 * 2 * 5, 3), torch.ones(4 * 3 * 2 * 5, 2))
    assert out.shape == (multiplier * 5, 2)
    assert loss.shape == (multiplier,)


def test_trap_02_a_scalar_stays_a_scalar_if_there_is_one_result():
    assert training(Network(), options(deviceIterations=2))(X, Y)[1].shape == ()


def test_trap_03_output_modes_have_different_defaults_resolved_in_a_copy():
    made = options(deviceIterations=2)
    trainer, model = training(Network(), made), poptorch.inferenceModel(Network(), made)
    assert trainer.options.output_mode == OutputMode.Final
    assert model.options.output_mode == OutputMode.All
    assert trainer(X, Y)[0].shape == (2, 2)
    assert model(X).shape == (4, 2)
    assert made.defaultOutputMode()
    with pytest.raises(AttributeError, match="Can't modify frozen Options"):
        made.deviceIterations(3)


def test_trap_04_the_loader_drops_an_incomplete_last_batch():
    dataset = TensorDataset(torch.arange(10.0))
    made = options(deviceIterations=2)
    assert [len(batch) for (batch,) in poptorch.DataLoader(made, dataset, batch_size=2)] == [4, 4]
    loader = poptorch.DataLoader(made, dataset, batch_size=2, drop_last=False, mode=poptorch.DataLoaderMode.Async)
    try:
        assert loader.rebatched_drop_last is False
        batches = [batch.clone() for (batch,) in loader]
    finally:
        loader.terminate()
    assert [len(batch) for batch in batches] == [4, 4, 2]
    assert torch.equal(torch.cat(batches), torch.arange(10.0))


def test_trap_04_items_of_an_asynchronous_loader_are_views_of_a_ring():
    loader = poptorch.DataLoader(
        options(),
        TensorDataset(torch.arange(16.0)),
        batch_size=1,
        mode=poptorch.DataLoaderMode.Async,
        async_options={"buffer_size": 2},
    )
    try:
        kept, right = [], []
        for number, (batch,) in enumerate(loader):
            right.append(batch.item() == number)
            kept.append(batch)
    finally:
        loader.terminate()
    assert right == [True] * 16
    assert len({batch.data_ptr() for batch in kept}) < len(kept)


def test_trap_05_every_input_has_to_divide_by_the_micro_batches_of_a_call():
    made = options(deviceIterations=2, replicationFactor=2)
    made.inputReplicaGrouping(2, poptorch.CommGroupType.Consecutive)
    made.Training.gradientAccumulation(3)
    training(Network(), made)(torch.ones(6, 3), torch.ones(6, 2))
    with pytest.raises(AssertionError, match="Invalid batch dimension"):
        training(Network(), made)(torch.ones(6, 3), torch.ones(8, 2))
    model = poptorch.inferenceModel(lambda x, k: x * k, options())
    assert model(X, torch.tensor(2.0)).shape == X.shape
    with pytest.raises(AssertionError, match="Invalid batch dimension"):
        poptorch.inferenceModel(lambda x, k: x * k, options(deviceIterations=2))(X, torch.tensor(2.0))


class Staged(nn.Module):
    """One layer for each entry, on the IPU that the entry names."""

    def __init__(self, ipus):
        super().__init__()
        self.layers = nn.ModuleList(
            poptorch.BeginBlock(nn.Linear(3, 3), f"{number}", ipu_id=ipu) for number, ipu in enumerate(ipus)
        )

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x, poptorch.identity_loss(x, "mean")


@pytest.mark.parametrize(("ipus", "stages"), [([0, 0], 1), ([0, 1], 2), ([0, 1, 1, 0], 3), ([0, 1, 0, 1], 4)])
def test_trap_06_stages_are_changes_of_the_ipu(ipus, stages):
    needed = 2 * stages - 1
    for accumulation in range(max(1, needed - 1), needed + 1):
        made = options()
        made.Training.gradientAccumulation(accumulation)
        model = training(Staged(ipus), made)
        if accumulation < needed:
            with pytest.raises(poptorch.Error, match=rf"number of pipeline stages \({needed}\)"):
                model(torch.ones(accumulation, 3))
        else:
            model(torch.ones(accumulation, 3))
    for iterations in range(max(1, stages - 1), stages + 1):
        model = poptorch.inferenceModel(Staged(ipus), options(deviceIterations=iterations))
        if iterations < stages:
            with pytest.raises(poptorch.Error, match=rf"number of pipeline stages \({stages}\)"):
                model(torch.ones(iterations, 3))
        else:
            model(torch.ones(iterations, 3))


def test_trap_07_the_users_module_always_shows_the_trained_weights():
    module, twin = Network(), Network()
    training(module)(X, Y)
    twin(X, Y)[1].backward()
    torch.optim.SGD(twin.parameters(), lr=0.1).step()
    expected = twin.layer.weight.detach()
    routes = [
        module.layer.weight,
        module.state_dict()["layer.weight"],
        next(module.parameters()),
        module.layer._parameters["weight"],
        copy.deepcopy(module).layer.weight,
    ]
    for weight in routes:
        torch.testing.assert_close(weight.detach(), expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(module(X), twin(X), rtol=0, atol=1e-6)


def test_trap_08_host_edits_wait_until_they_are_sent_but_inference_follows_training():
    module = Network()
    trainer, model = training(module), poptorch.inferenceModel(module, options())
    before = model(X)
    trainer(X, Y)
    after = model(X)
    assert not torch.equal(after, before)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
    assert torch.equal(model(X), after)
    model.copyWeightsToDevice()
    assert model(X).abs().max().item() == 0.0
    assert trainer(X, Y)[0].abs().max().item() > 0.0
    trainer.load_state_dict({name: torch.zeros_like(each) for name, each in module.state_dict().items()})
    assert trainer(X, Y)[0].abs().max().item() == 0.0


def test_trap_09_optimizer_values_are_read_only_when_the_optimizer_is_set():
    module = Network()
    optimizer = poptorch.optim.SGD(module.parameters(), lr=0.1)
    model = poptorch.trainingModel(module, options(), optimizer=optimizer)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: float(epoch == 0))
    model(X, Y)
    schedule.step()
    assert optimizer.param_groups[0]["lr"] == 0.0
    moving = module.layer.weight.detach().clone()
    model(X, Y)
    assert not torch.equal(module.layer.weight, moving)
    model.setOptimizer(optimizer)
    still = module.layer.weight.detach().clone()
    model(X, Y)
    assert torch.equal(module.layer.weight, still)
    assert not optimizer.variable_attrs.isConstant("lr")
    assert optimizer.variable_attrs.isConstant("momentum")


def test_trap_10_gradients_are_averaged_and_each_iteration_updates_once():
    made = options(deviceIterations=2, replicationFactor=2)
    made.Training.gradientAccumulation(2)
    module, twin = Network(), Network()
    x, y = torch.randn(16, 3), torch.randn(16, 2)
    training(module, made)(x, y)
    optimizer = torch.optim.SGD(twin.parameters(), lr=0.1)
    for part in zip(x.chunk(2), y.chunk(2), strict=True):
        optimizer.zero_grad()
        for micro in zip(*(each.chunk(4) for each in part), strict=True):
            (twin(*micro)[1] / 4).backward()
        optimizer.step()
    torch.testing.assert_close(module.layer.weight, twin.layer.weight, rtol=0, atol=1e-6)


def test_trap_11_outputs_have_32_bits_inputs_are_written_back_and_backward_raises():
    def forward(x, wide):
        x.add_(1)
        return x.argmax(dim=1), wide * 2, x.sum()

    given = X.clone()
    best, doubled, total = poptorch.inferenceModel(forward, options())(given, torch.ones(2, dtype=torch.float64))
    assert (best.dtype, doubled.dtype) == (torch.int32, torch.float32)
    assert torch.equal(given, X + 1)
    with pytest.raises(poptorch.Error, match=r"backward\(\) cannot be called explicitly on outputs"):
        total.backward()


def test_trap_12_forward_is_captured_once_and_only_buffers_remember():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x):
            self.calls += 1
            self.count += 1
            return x + self.calls, x + self.count

    model = poptorch.inferenceModel(Counting(), options())
    results = [tuple(each.item() for each in model(torch.zeros(1))) for _ in range(3)]
    assert results == [(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]


def test_trap_13_written_buffers_need_permission_and_a_seed_seeds_torch():
    class Adding(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(3))

        def forward(self, x):
            self.total += x.sum(0)
            return x + self.total

    def run(module, broadcast):
        made = options(replicationFactor=2).broadcastBuffers(broadcast)
        return poptorch.inferenceModel(module, made)(X)

    with pytest.raises(poptorch.Error, match="PopTorch does not support broadcasting buffers"):
        run(Adding(), True)
    assert run(Adding(), False).shape == run(nn.BatchNorm1d(3), True).shape == X.shape
    options(randomSeed=42)
    drawn = torch.rand(1)
    torch.manual_seed(42)
    assert torch.equal(torch.rand(1), drawn)


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        (AssertionError, lambda: poptorch.Options().deviceIterations(1.5)),
        (AssertionError, lambda: poptorch.inferenceModel(Network(), options())(X, Y, X)),
        (AssertionError, lambda: training(Network()).setOptimizer(torch.optim.Adagrad([nn.Parameter(X)]))),
        (ValueError, lambda: poptorch.setLogLevel("wibble")),
        (ValueError, lambda: poptorch.Options().Precision.setPartialsType(torch.int8)),
        (ValueError, lambda: poptorch.Options().inputReplicaGrouping(1, poptorch.CommGroupType.All)),
        (RuntimeError, lambda: poptorch.registerPreCompileHook(3)),
        (RuntimeError, lambda: poptorch.optim.SGD([nn.Parameter(X)], lr=0.1).load_state_dict({})),
        (AttributeError, lambda: poptorch.Options().wings),
        (poptorch.Error, lambda: poptorch.inferenceModel(Network(), options())()),
        (poptorch.Error, lambda: poptorch.inferenceModel(Network(), {})),
        (poptorch.Error, lambda: training(Network())(X)),
    ],
)
def test_trap_14_each_misuse_raises_its_own_type(kind, cause):
    with pytest.raises(kind):
        cause()


def test_trap_15_moving_a_wrapped_model_raises():
    module = Network()
    model = training(module)
    for move in (
        lambda: model.to("cpu"),
        lambda: model.cuda(),
        lambda: model.cpu(),
        lambda: model.to(torch.float16),
    ):
        with pytest.raises(LostModelError, match="was called on a wrapped model"):
            move()
    for stay in (model.train, model.eval, model.float, lambda: model.requires_grad_(True)):
        assert stay() is model
    model(X, Y)
    assert model.engine.record.steps == {("cpu", "graph"): 1}
