from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.errors import AttachmentError, InputError, NotCompiledError

pytestmark = pytest.mark.slow


def test_forward_runs_once_for_many_calls(pair):
    trained = pair(device_iterations=2, gradient_accumulation=2)
    for _ in range(25):
        trained.step(trained.batch(16))
    assert trained.module.runs.count == 1
    trained.step.detach()
    trained.step(trained.batch(16))
    trained.step.detach()
    trained.executor.attach()
    trained.step(trained.batch(16))
    assert trained.module.runs.count == 1
    assert trained.step.record.compilations == 1
    trained.step.eval()
    for _ in range(3):
        trained.step(trained.batch(16))
    assert trained.module.runs.count == 2
    trained.step.destroy()
    trained.step(trained.batch(16))
    assert trained.module.runs.count == 3


def test_forward_runs_once_in_inference(network):
    module = network()
    infer = pilotage.inference(module)
    infer.compile(torch.randn(4, 4))
    assert module.runs.count == 1
    for _ in range(5):
        infer(torch.randn(4, 4))
    assert module.runs.count == 1


def test_compiling_does_not_train(pair, assert_same_state):
    trained = pair()
    trained.step.compile(trained.batch())
    assert trained.executor.is_compiled
    assert trained.executor.is_attached
    assert_same_state(trained.module, trained.plain)
    assert (trained.step.record.updates, trained.step.record.calls) == (0, 0)
    assert trained.step.record.compilation_seconds > 0


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.3),
        lambda p: torch.optim.Adam(p, lr=0.05, amsgrad=True),
        lambda p: torch.optim.RMSprop(p, lr=0.05, momentum=0.5, centered=True),
    ],
    ids=["sgd", "adam", "rmsprop"],
)
def test_detaching_keeps_the_optimizer_state_bitwise(make, pair, assert_equal, assert_same_state):
    trained = pair(make=make)
    for _ in range(4):
        mine, theirs = trained.train()
        assert_equal(mine, theirs)
        trained.step.detach()
        assert not trained.executor.is_attached
        assert trained.executor.is_compiled
        assert_same_state(trained.module, trained.plain)
        assert trained.plain_again()


def test_attaching_or_detaching_twice_is_refused(pair):
    trained = pair()
    for method in (trained.executor.attach, trained.step.detach):
        with pytest.raises(NotCompiledError):
            method()
    trained.train()
    with pytest.raises(AttachmentError, match="already attached"):
        trained.executor.attach()
    trained.step.detach()
    with pytest.raises(AttachmentError, match="not attached"):
        trained.step.detach()


def test_destroying_resets_the_optimizer_and_keeps_the_weights(pair, assert_equal, assert_same_state):
    trained = pair()
    trained.train(2)
    trained.step.destroy()
    assert not trained.executor.is_compiled
    assert trained.plain_again()
    assert_same_state(trained.module, trained.plain)
    trained.plain_optimizer.state.clear()
    mine, theirs = trained.train(2, size=6)
    assert_equal(mine, theirs)
    assert trained.step.record.compilations == 2


def test_destroying_twice_or_before_anything_is_harmless(pair):
    trained = pair()
    trained.step.destroy()
    trained.train()
    trained.step.destroy()
    trained.step.destroy()


def test_after_destroy_another_kind_of_call_is_compiled(network):
    infer = pilotage.inference(nn.Linear(4, 2), shapes=1)
    infer(torch.randn(3, 4))
    with pytest.raises(InputError, match=r"destroy\(\)"):
        infer(torch.randn(5, 4))
    infer.destroy()
    assert infer(torch.randn(5, 4)).shape == (5, 2)


def test_a_change_of_mode_keeps_the_optimizer_state(pair, assert_equal, assert_same_state):
    trained = pair()
    for _ in range(2):
        mine, theirs = trained.train(2)
        assert_equal(mine, theirs)
        trained.step.eval()
        trained.plain.eval()
        mine, theirs = trained.train(1)
        assert_equal(mine, theirs)
        trained.step.train()
        trained.plain.train()
    assert_same_state(trained.module, trained.plain)


def test_setting_the_same_mode_does_not_capture_again(pair):
    trained = pair()
    trained.train()
    trained.step.train()
    trained.train()
    assert trained.step.record.compilations == 1


@pytest.mark.parametrize("surroundings", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("when", ["first", "later", "always"])
@pytest.mark.parametrize("tier", ["graph", "eager"])
def test_a_program_trains_under_no_grad_and_inference_mode(
    tier, surroundings, when, pair, assert_equal, assert_same_state
):
    trained = pair(tier=tier)
    for number in range(3):
        batch = trained.batch()
        if when == "always" or (when == "first") == (number == 0):
            with surroundings():
                mine = trained.step(batch)
        else:
            mine = trained.step(batch)
        assert_equal(tuple(t.clone() for t in mine), trained.train_plain(batch))
    assert_same_state(trained.module, trained.plain)
    trained.module(trained.batch())[1].backward()


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_recurrent_layers_infer_under_no_grad(kind, assert_equal):
    module = kind(4, 3, batch_first=True)
    infer = pilotage.inference(module)
    batch = torch.randn(2, 5, 4)
    with torch.no_grad():
        expected = module(batch)
        for _ in range(2):
            # In eager PyTorch too, a GRU uses another kernel without gradients.
            assert_equal(infer(batch), expected, 1e-6)
    assert_equal(infer(batch), expected, 1e-6)


def test_an_interrupted_call_shows_its_completed_updates(twins, assert_equal):
    class Interrupted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x):
            if x.sum() > 100:
                raise KeyboardInterrupt
            return functional.mse_loss(self.layer(x), torch.zeros_like(x))

    mine, theirs = twins(Interrupted)
    step = pilotage.training(mine, torch.optim.SGD(mine.parameters(), lr=0.1), device_iterations=3, tier="eager")
    batches = torch.randn(2, 3), torch.randn(2, 3), torch.full((2, 3), 1000.0)
    with pytest.raises(KeyboardInterrupt):
        step(torch.cat(batches))
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.1)
    for batch in batches[:2]:
        optimizer.zero_grad()
        theirs(batch).backward()
        optimizer.step()
    assert_equal(dict(mine.state_dict()), dict(theirs.state_dict()))


def test_outputs_belong_to_the_caller(pair, assert_equal):
    trained = pair()
    first, _ = trained.train()
    kept = tuple(t.clone() for t in first)
    assert not any(t.requires_grad for t in first)
    trained.train()
    assert_equal(first, kept)
    for tensor in first:
        tensor.zero_()
    mine, theirs = trained.train()
    assert_equal(mine, theirs)


def test_an_executor_without_a_program_has_no_session(pair):
    with pytest.raises(NotCompiledError, match=r"Call it once, or compile\(\) it"):
        _ = pair().executor.session


def test_outputs_have_the_structure_that_forward_returns(assert_equal):
    class Nested(nn.Module):
        def forward(self, batch, *, scale=2, names=("a", "b")):
            first, second = names
            return {first: [batch["x"] * scale, None], second: (batch["y"], "text", {"z": batch["x"].sum()})}

    infer = pilotage.inference(Nested())
    batch = {"y": torch.arange(2), "x": torch.ones(2)}
    for _ in range(2):
        assert_equal(infer(batch)["a"][0], torch.full((2,), 2.0))
    result = infer({"x": torch.ones(2), "y": torch.arange(2)})
    assert list(result) == ["a", "b"]
    assert result["a"][1] is None
    assert result["b"][1] == "text"
    assert result["b"][2]["z"].item() == 2


def test_a_module_without_parameters_or_inputs_that_are_tensors_can_run(assert_equal):
    class Constant(nn.Module):
        def forward(self, count):
            return torch.arange(count) * 2

    assert_equal(pilotage.inference(Constant())(3), torch.tensor([0, 2, 4]))
