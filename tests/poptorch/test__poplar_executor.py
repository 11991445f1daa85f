"""The wrapped model: compiling, attaching, and access to its module."""

from __future__ import annotations

import copy
from datetime import timedelta

import pytest
import torch
from torch import nn
from torch.nn import functional

import poptorch


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.hidden = 7

    def forward(self, x, y=None):
        out = self.layer(x)
        return out if y is None else (out, functional.mse_loss(out, y))

    def describe(self, word):
        return f"{word} {self.hidden}"


@pytest.fixture
def network():
    torch.manual_seed(0)
    return Network()


X, Y = torch.linspace(-1, 1, 12).reshape(4, 3), torch.zeros(4, 2)


def training(module, options=None, **settings):
    return poptorch.trainingModel(
        module, options, optimizer=poptorch.optim.SGD(module.parameters(), lr=0.1, **settings)
    )


# Compiling


def test_a_model_is_compiled_by_its_first_call_or_by_compile(network):
    called, compiled = poptorch.inferenceModel(network), poptorch.inferenceModel(network)
    assert not called.isCompiled()
    called(X)
    compiled.compile(X)
    assert called.isCompiled()
    assert compiled.isCompiled()
    assert torch.equal(called(X), compiled(X))


def test_compiling_does_not_run_or_train(network):
    before = network.layer.weight.detach().clone()
    model = training(network)
    assert model.compile(X, Y) is None
    assert torch.equal(network.layer.weight, before)
    assert model.engine.record.calls == 0


def test_compiling_twice_is_ignored_with_a_warning(network, warnings_of_poptorch):
    model = poptorch.inferenceModel(network)
    model.compile(X)
    assert warnings_of_poptorch() == []
    model.compile(torch.ones(1, 3))
    (said,) = warnings_of_poptorch()
    assert "ignored" in said
    assert model(X).shape == (4, 2)
    assert model.engine.record.compilations == 1


@pytest.mark.parametrize(("check", "calls_to_compare"), [("off", 0), ("first", 1), (2, 2)])
def test_forward_runs_at_compilation_and_to_be_compared(check, calls_to_compare):
    calls = []

    def forward(x):
        calls.append(x.shape)
        return x + 1

    model = poptorch.inferenceModel(forward, poptorch.Options().deviceIterations(2).check(check))
    for _ in range(3):
        model(X)
    assert calls == [(2, 3)] * (1 + calls_to_compare)


def test_hooks_run_around_each_compilation_even_one_that_fails(network):
    said = []
    handles = [
        poptorch.registerPreCompileHook(lambda: said.append("before")),
        poptorch.registerPostCompileHook(lambda: said.append("after")),
    ]
    try:
        model = poptorch.inferenceModel(network)
        model(X)
        model(X)
        assert said == ["before", "after"]
        model.destroy()
        model(X)
        assert said == ["before", "after"] * 2
        with pytest.raises(poptorch.Error, match="Couldn't find a loss"):
            training(network)(X)
        assert said == ["before", "after"] * 3
    finally:
        for handle in handles:
            handle.remove()
    poptorch.inferenceModel(network)(X)
    assert len(said) == 6


def test_the_compilation_time_is_known_if_progress_is_shown(network):
    shown = poptorch.inferenceModel(network)
    with pytest.raises(poptorch.Error, match="Please compile the model before obtaining compilation time"):
        shown.compilationTime()
    shown(X)
    assert timedelta(0) < shown.compilationTime() < timedelta(minutes=1)
    hidden = poptorch.inferenceModel(network, poptorch.Options().showCompilationProgressBar(False))
    hidden(X)
    with pytest.raises(poptorch.Error, match="showCompilationProgressBar"):
        hidden.compilationTime()


def test_only_ipu_hardware_counts_cycles(network):
    model = poptorch.inferenceModel(network)
    with pytest.raises(
        poptorch.Error, match=r"Cycle count logging is disabled. Please set option logCycleCount to True to enable\."
    ):
        model.cycleCount()
    counting = poptorch.inferenceModel(network, poptorch.Options().logCycleCount(True))
    with pytest.raises(poptorch.Error, match=r"Please run the model at least once before obtaining cycle count\."):
        counting.cycleCount()
    with pytest.raises(poptorch.Error, match=r"Cycle count logging is only supported on actual IPU hardware\."):
        counting(X)


# Where forward runs


def test_forward_knows_that_the_wrapper_runs_it():
    class Asking(nn.Module):
        def __init__(self):
            super().__init__()
            self.constructed = poptorch.isRunningOnIpu()

        def forward(self, x):
            return x + 1 if poptorch.isRunningOnIpu() else x - 1

    module = Asking()
    assert not module.constructed
    model = poptorch.inferenceModel(module)
    assert model(torch.zeros(1)).item() == 1.0
    assert not poptorch.isRunningOnIpu()
    assert module(torch.zeros(1)).item() == -1.0
    assert model(torch.zeros(1)).item() == 1.0


def test_after_a_forward_that_raises_nothing_runs_on_the_device():
    def forward(x):
        assert poptorch.isRunningOnIpu()
        raise KeyError("of the user")

    with pytest.raises(KeyError, match="of the user"):
        poptorch.inferenceModel(forward)(torch.ones(1))
    assert not poptorch.isRunningOnIpu()


# Devices


def test_a_compiled_model_is_attached(network):
    model = poptorch.inferenceModel(network)
    assert not model.isAttachedToDevice()
    model.compile(X)
    assert model.isAttachedToDevice()


def test_attaching_or_detaching_twice_is_refused(network):
    model = poptorch.inferenceModel(network)
    with pytest.raises(poptorch.Error, match="Model has not been compiled"):
        model.attachToDevice()
    with pytest.raises(poptorch.Error, match="Model has not been compiled"):
        model.detachFromDevice()
    model(X)
    with pytest.raises(poptorch.Error, match="Device is already attached"):
        model.attachToDevice()
    model.detachFromDevice()
    assert not model.isAttachedToDevice()
    with pytest.raises(poptorch.Error, match="Device is not attached"):
        model.detachFromDevice()
    model.attachToDevice()
    assert model.isAttachedToDevice()


@pytest.mark.parametrize("explicitly", [True, False])
def test_a_detached_model_continues_where_it_was(network, explicitly):
    twin = copy.deepcopy(network)
    model, other = training(network, momentum=0.9), training(twin, momentum=0.9)
    for calls in range(4):
        if calls == 2:
            model.detachFromDevice()
            if explicitly:
                model.attachToDevice()
        assert torch.equal(model(X, Y)[1], other(X, Y)[1])
        assert model.isAttachedToDevice()
    assert torch.equal(network.layer.weight, twin.layer.weight)


def test_edits_between_detaching_and_attaching_reach_the_device(network):
    model = poptorch.inferenceModel(network)
    model(X)
    model.detachFromDevice()
    with torch.no_grad():
        network.layer.weight.zero_()
        network.layer.bias.fill_(3.0)
    assert model(X).unique().tolist() == [3.0]


def test_a_detached_model_has_copied_its_weights_to_the_host(network):
    before = network.layer.weight.detach().clone()
    model = training(network)
    model(X, Y)
    model.detachFromDevice()
    assert not torch.equal(network.layer.weight, before)


@pytest.mark.parametrize(
    "offline",
    [lambda o: o.connectionType(poptorch.ConnectionType.Never), lambda o: o.useOfflineIpuTarget()],
    ids=["Never", "offline target"],
)
def test_an_offline_model_is_compiled_but_never_run(network, offline, tmp_path):
    model = poptorch.inferenceModel(network, offline(poptorch.Options()))
    for run in (lambda: model(X), model.attachToDevice):
        with pytest.raises(AssertionError, match="Trying to run a model on an offline device"):
            run()
    model.compile(X)
    assert model.isCompiled()
    assert not model.isAttachedToDevice()
    with pytest.raises(AssertionError, match="Trying to run a model on an offline device"):
        model(X)
    model.compileAndExport(str(tmp_path / "model.poptorch"))
    assert torch.equal(poptorch.load(str(tmp_path / "model.poptorch"))(X), network(X).detach())


def test_a_model_connected_on_demand_runs(network):
    options = poptorch.Options().connectionType(poptorch.ConnectionType.OnDemand)
    assert torch.equal(poptorch.inferenceModel(network, options)(X), network(X).detach())


# Calls before compilation


@pytest.mark.parametrize(
    "ask",
    [
        lambda model: model.rng_state,
        lambda model: setattr(model, "rng_state", [1, 2]),
        lambda model: model.copyWeightsToHost(),
        lambda model: model.copyWeightsToDevice(),
        lambda model: model.save("nowhere"),
    ],
)
@pytest.mark.parametrize("destroyed", [True, False])
def test_a_model_without_a_program_says_so(network, ask, destroyed):
    model = poptorch.inferenceModel(network)
    if destroyed:
        model(X)
        model.destroy()
    with pytest.raises(poptorch.Error, match=r"Model has not been compiled or has been destroyed\."):
        ask(model)


@pytest.mark.parametrize("tier", ["graph", "eager"])
def test_a_model_without_a_program_is_not_saved_in_a_pinned_tier_either(network, tier, monkeypatch):
    monkeypatch.setenv("PILOTAGE_TIER", tier)
    with pytest.raises(poptorch.Error, match=r"Model has not been compiled or has been destroyed\."):
        poptorch.inferenceModel(network).save("nowhere")


def test_destroying_a_model_that_is_not_compiled_does_nothing(network):
    model = poptorch.inferenceModel(network)
    model.destroy()
    model.destroy()
    assert model(X).shape == (4, 2)


# The module behind


def test_a_wrapper_is_not_a_module_but_shows_its_own(network):
    model = poptorch.inferenceModel(network)
    assert isinstance(model, poptorch.PoplarExecutor)
    assert not isinstance(model, nn.Module)
    assert model.model is network
    assert model.layer is network.layer
    assert model.hidden == 7
    assert model.describe("hidden") == "hidden 7"
    assert model.training is True
    assert [name for name, _ in model.named_parameters()] == ["layer.weight", "layer.bias"]
    assert model.state_dict().keys() == network.state_dict().keys()
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        _ = model.absent


def test_a_wrapper_looks_like_its_module_with_its_blocks(network):
    assert repr(poptorch.inferenceModel(network)) == repr(network)
    network.layer = poptorch.BeginBlock(network.layer, ipu_id=0)
    assert "(layer): BeginBlock(user_id=None, ipu_id=0) Linear(" in repr(poptorch.inferenceModel(network))
    assert repr(poptorch.inferenceModel(network)) == poptorch.module_repr(network)


# State that forward keeps


def test_python_attributes_do_not_change_from_call_to_call_but_buffers_do():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x):
            self.calls += 1
            self.count.add_(1)
            return x + self.calls, x + self.count

    model = poptorch.inferenceModel(Counting(), poptorch.Options().deviceIterations(2))
    for first in (1.0, 3.0):
        attribute, buffer = model(torch.zeros(2))
        assert attribute.tolist() == [1.0, 1.0]
        assert buffer.tolist() == [first, first + 1]


def test_tied_parameters_stay_tied():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.first, self.second = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
            self.second.weight = self.first.weight

        def forward(self, x):
            return functional.mse_loss(self.second(self.first(x)), torch.zeros_like(x))

    module, twin = Tied(), Tied()
    x = torch.randn(3, 2)
    optimizer = torch.optim.SGD(twin.parameters(), lr=0.1)
    model = training(module)
    for _ in range(3):
        model(x)
        optimizer.zero_grad()
        twin(x).backward()
        optimizer.step()
    assert module.first.weight is module.second.weight
    torch.testing.assert_close(module.first.weight, twin.first.weight, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "forward",
    [
        lambda x: torch.nn.functional.one_hot(x.long()),
        lambda x: torch.bincount(x.long()),
        lambda x: x[x > 0],
        lambda x: x if x.sum() > 0 else -x,
        lambda x: x * x.sum().item(),
    ],
    ids=["one_hot", "bincount", "mask", "branch", "item"],
)
def test_data_dependent_code_is_refused_with_the_users_line(forward):
    with pytest.raises(poptorch.Error, match=r"test__poplar_executor\.py:\d+ in <lambda>"):
        poptorch.inferenceModel(forward)(torch.ones(3))
