"""Stages on several cards of one process run compiled code, and switch to it while they train.

The cards are the same device listed several times: each stage still has its own state, program and code.
"""

from __future__ import annotations

import json
import runpy
import time
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.compiler.code import NativeCode
from pilotage.errors import MismatchError, NonFiniteLossError, OptionError
from pilotage.events import Checked, Noted, TierChanged, Warned
from pilotage.strategies.stages.strategy import Pipeline

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SAMPLES = 2
ROUNDS = 4
PATIENCE = 600
"""Seconds: compilers have a low priority, and other programs may use the cores."""

Staged = runpy.run_path(str(Path(__file__).parents[2] / "staged.py"))["Staged"]


def batches(calls, rounds=ROUNDS):
    generator = torch.Generator().manual_seed(5)
    for _ in range(calls):
        yield (
            torch.randn(rounds * SAMPLES, 6, generator=generator),
            torch.randint(6, (rounds * SAMPLES,), generator=generator),
        )


def sgd(module):
    # Rounding errors stay small over hundreds of updates of many sines.
    rate, momentum = (1e-3, 0.5) if isinstance(module, Waves) else (0.05, 0.9)
    return torch.optim.SGD(module.parameters(), lr=rate, momentum=momentum)


def trainer(module, cache, cards=2, **options):
    settings = {"outputs": "all", "broadcast_buffers": False, "gradient_accumulation": ROUNDS} | options
    return pilotage.training(
        module, sgd(module), backend="cpu", cards=["cpu"] * cards, cache_directory=cache, **settings
    )


def staged(**net):
    torch.manual_seed(1)
    return Staged(2, **net)


class Eager:
    """Trains a module in plain PyTorch, which returns its loss last."""

    def __init__(self, module, rounds=ROUNDS):
        self.module, self.optimizer, self.rounds = module, sgd(module), rounds

    def __call__(self, inputs, targets):
        found = []
        for micro_batch in zip(inputs.chunk(self.rounds), targets.chunk(self.rounds), strict=True):
            returned = self.module(*micro_batch)
            (returned[-1] / self.rounds).backward()
            found.append([each.detach() for each in returned])
        self.optimizer.step()
        self.optimizer.zero_grad()
        return [torch.stack(each) if each[0].dim() == 0 else torch.cat(each) for each in zip(*found, strict=True)]


def close(found, expected, tolerance=1e-5):
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


def compiled_stages(step):
    strategy = step._executor.session.strategy
    assert isinstance(strategy, Pipeline)
    return [code is not None for code in strategy._codes]


def said(heard):
    return [event.message for event in heard if isinstance(event, (Noted, Warned))]


@pytest.mark.parametrize("order", ["1f1b", pytest.param("gpipe", marks=pytest.mark.long)])
@pytest.mark.long
def test_compiled_stages_on_cards_reach_the_weights_of_eager(order, tmp_path):
    heard, plain = [], Eager(staged(tied=True))
    step = trainer(staged(tied=True), tmp_path, tier="compiled", pipeline=order, listeners=[heard.append])
    for batch in batches(3):
        close(list(step(*batch)), plain(*batch))
    close(step.module.state_dict(), plain.module.state_dict())
    assert compiled_stages(step) == [True, True]
    assert step.record.latest_tier == "compiled"
    (change,) = [event for event in heard if isinstance(event, TierChanged)]
    assert change.tier == "compiled"
    for stage in (0, 1):
        assert f"stage {stage} compiled" in change.reason
        assert any(message.startswith(f"Stage {stage}: Compiling took") for message in said(heard))
    assert [event.agrees for event in heard if isinstance(event, Checked)] == [True]
    kept = [path.parent.parent for path in tmp_path.glob("*/forward/wrapper.py")]
    assert len(kept) == 2, "each stage has code of its own"
    for folder in kept:
        assert {path.name for path in folder.iterdir()} >= {"forward", "backward", "update"}
        assert json.loads((folder / "manifest.json").read_text())["about"]["stage"] in "01"

    again = trainer(staged(tied=True), tmp_path, tier="compiled", pipeline=order, listeners=[heard.append])
    again.compile(*next(batches(1)))
    assert [event.reason.partition(" (")[0] for event in heard if isinstance(event, TierChanged)] == [
        "compiled",
        "found in the cache",
    ]


@pytest.mark.long
@pytest.mark.parametrize(("cards", "options"), [(2, {}), (3, {"replicas": 2, "gradient_accumulation": 2})])
def test_compiled_stages_draw_the_random_numbers_of_eager(cards, options, tmp_path):
    torch.manual_seed(1)
    step = trainer(Staged(cards, dropout=0.3), tmp_path, cards, tier="compiled", seed=3, **options)
    torch.manual_seed(1)
    graph = trainer(Staged(cards, dropout=0.3), tmp_path, 1, tier="graph", seed=3, **options)
    for batch in batches(3):
        close(step(*batch), graph(*batch))
    assert compiled_stages(step) == [True] * cards
    if not options:
        # One replica draws from the user's seed, as a script does.
        torch.manual_seed(1)
        plain = Eager(Staged(cards, dropout=0.3))
        torch.manual_seed(3)
        for batch in batches(3):
            plain(*batch)
        close(step.module.state_dict(), plain.module.state_dict())


class Waves(nn.Module):
    """Two stages of many small operations, which compiled code is sure to run faster."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(6, 16), nn.Linear(16, 6)

    def forward(self, x, y):
        pilotage.enter_stage(0)
        x = waved(self.first(x))
        pilotage.enter_stage(1)
        return (functional.cross_entropy(self.last(waved(x)), y),)


def waved(x):
    for number in range(20):
        x = x + 0.1 * torch.sin(number * x)
    return x


def waves():
    torch.manual_seed(0)
    return Waves()


def until_switched(step, plain, pairs, calls=5):
    """Train beside eager PyTorch until the tier changes, and a few updates more."""
    end, left = time.monotonic() + PATIENCE, None
    while left != 0 and time.monotonic() < end:
        for batch in pairs:
            close(step(*batch), plain(*batch), 1e-4)
        if step.record.tier_changes:
            left = calls if left is None else left - 1
        else:
            # Leave the cores to the compilers.
            time.sleep(0.05)


@pytest.mark.long
def test_stages_on_cards_run_compiled_code_after_the_switch(tmp_path):
    heard, pairs = [], list(batches(2))
    step, plain = trainer(waves(), tmp_path, listeners=[heard.append]), Eager(waves())
    until_switched(step, plain, pairs)
    ((updates, tier),) = step.record.tier_changes
    assert tier == "compiled"
    assert 0 < updates < step.record.updates
    assert step.record.latest_tier == "compiled"
    assert compiled_stages(step) == [True, True]
    (change,) = [event for event in heard if isinstance(event, TierChanged)]
    assert (change.tier, change.updates) == ("compiled", updates)
    assert "stage 0 compiled" in change.reason
    assert "stage 1 compiled" in change.reason
    # The first call, and the first one on compiled code.
    assert [event.agrees for event in heard if isinstance(event, Checked)] == [True, True]
    close(step.module.state_dict(), plain.module.state_dict(), 1e-4)
    assert step._executor.session.ascent is None


class Careful(nn.Module):
    """Its second stage accepts numbers between 0 and 1 only, which random messages are not, and overwrites them."""

    def __init__(self):
        super().__init__()
        self.fixed, self.last = nn.Linear(6, 3).requires_grad_(False), nn.Linear(3, 3)

    def forward(self, x, y):
        pilotage.enter_stage(0)
        chances = torch.sigmoid(self.fixed(x))
        pilotage.enter_stage(1)
        y = functional.one_hot(y % 3, 3).float()
        loss = functional.binary_cross_entropy(chances, y)
        return (loss + functional.binary_cross_entropy(torch.sigmoid(self.last(chances.mul_(0.5))), y),)


def careful():
    torch.manual_seed(0)
    return Careful()


@pytest.mark.long
def test_a_stage_that_trains_nothing_and_one_that_refuses_random_messages_are_compiled(tmp_path):
    step, plain = trainer(careful(), tmp_path, tier="compiled"), Eager(careful())
    random = torch.random.get_rng_state()
    step.compile(*next(batches(1)))
    assert torch.equal(torch.random.get_rng_state(), random)
    for batch in batches(3):
        close(step(*batch), plain(*batch))
    close(step.module.state_dict(), plain.module.state_dict())
    assert compiled_stages(step) == [True, True]


@pytest.mark.long
def test_a_single_micro_batch_passes_through_compiled_stages(tmp_path):
    options = {"gradient_accumulation": 1, "device_iterations": 2, "pipeline": "1f1b"}
    step, plain = trainer(staged(), tmp_path, tier="compiled", **options), Eager(staged(), 1)
    for inputs, targets in batches(2, 2):
        expected = [plain(*part) for part in zip(inputs.chunk(2), targets.chunk(2), strict=True)]
        outputs = step(inputs, targets)
        close(outputs[0], torch.cat([part[0] for part in expected]))
        close(outputs[2].flatten(), torch.cat([part[2] for part in expected]))
    close(step.module.state_dict(), plain.module.state_dict())
    assert compiled_stages(step) == [True, True]


@pytest.mark.long
def test_inference_runs_through_compiled_stages(tmp_path):
    torch.manual_seed(1)
    module, heard = Staged(4).eval(), []
    model = pilotage.inference(
        module,
        backend="cpu",
        cards=["cpu"] * 4,
        device_iterations=5,
        tier="compiled",
        cache_directory=tmp_path,
        listeners=[heard.append],
    )
    inputs = torch.randn(5 * SAMPLES, 6)
    close(model(inputs), module(inputs).detach())
    assert compiled_stages(model) == [True] * 4
    assert model.record.latest_tier == "compiled"


@pytest.mark.long
def test_compiled_stages_stop_before_an_update_with_a_loss_that_is_not_finite(tmp_path):
    step = trainer(staged(), tmp_path, tier="compiled", nonfinite_loss="raise")
    inputs, targets = next(batches(1))
    step(inputs, targets)
    before = {name: weight.clone() for name, weight in step.module.named_parameters()}
    with pytest.raises(NonFiniteLossError):
        step(torch.full_like(inputs, float("nan")), targets)
    assert all(torch.equal(weight, before[name]) for name, weight in step.module.named_parameters())
    assert compiled_stages(step) == [True, True]


class Returning(Staged):
    """Returns to the first stage at its end, which a pipeline cannot do."""

    def forward(self, x, target=None):
        output, total, loss = super().forward(x, target)
        pilotage.enter_stage(0)
        return output, total, loss + self.first(x).mean()


def test_stages_that_cannot_be_a_pipeline_are_refused_with_the_reason(tmp_path):
    torch.manual_seed(1)
    heard = []
    step = trainer(Returning(2), tmp_path, tier="compiled", listeners=[heard.append])
    with pytest.raises(OptionError, match="its stages are on several cards but not a pipeline"):
        step(*next(batches(1)))
    assert any("returns to stage 0" in message for message in said(heard))


@pytest.fixture
def wrong_code(monkeypatch):
    """Compiled code computes something else than the graph."""
    run = NativeCode.__call__

    def wrongly(self, *tensors):
        return [each * 1.5 if each.is_floating_point() else each for each in run(self, *tensors)]

    monkeypatch.setattr(NativeCode, "__call__", wrongly)


def until_over(step, pairs):
    """Train until the first call after the switch was compared, and two updates more."""
    end = time.monotonic() + PATIENCE
    while not step.record.tier_changes and time.monotonic() < end:
        step(*pairs[0])
        time.sleep(0.05)
    before = {name: weight.clone() for name, weight in step.module.state_dict().items()}
    return before, step(*pairs[1])


@pytest.mark.long
def test_wrong_code_of_stages_is_refused_at_the_first_call_after_the_switch(wrong_code, tmp_path):
    step = trainer(waves(), tmp_path)
    with pytest.raises(MismatchError, match="the machine code differs"):
        until_over(step, list(batches(2)))
    assert step.record.latest_tier == "graph", "the refused call does not count"
    assert [tier for _, tier in step.record.tier_changes] == ["compiled"]


@pytest.mark.long
def test_wrong_code_of_stages_goes_on_with_a_warning_if_that_was_asked_for(wrong_code, tmp_path):
    heard, pairs = [], list(batches(2))
    step = trainer(waves(), tmp_path, on_mismatch="warn", listeners=[heard.append])
    before, _ = until_over(step, pairs)
    step(*pairs[0])
    assert [event.agrees for event in heard if isinstance(event, Checked)] == [True, False]
    (warning,) = [message for message in said(heard) if "differ by more than rounding" in message]
    assert "the machine code differs" in warning
    assert step.record.latest_tier == "compiled"
    assert not torch.equal(step.module.state_dict()["last.weight"], before["last.weight"])


class OnHost(nn.Module):
    """Its second stage calls an operator that works on the host, so it cannot be compiled."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x, y):
        pilotage.enter_stage(0)
        x = self.first(x).tanh()
        pilotage.enter_stage(1)
        return (functional.cross_entropy(self.last(torch.ops.pilotage_test.doubled(x)), y),)


@pytest.fixture
def operator_on_host():
    library = torch.library.Library("pilotage_test", "FRAGMENT")
    library.define("doubled(Tensor x) -> Tensor", tags=(torch.Tag.cudagraph_unsafe,))
    library.impl("doubled", lambda x: x * 2, "CompositeExplicitAutograd")
    library.impl("doubled", lambda x: torch.empty_like(x), "Meta")
    torch.library.register_autograd("pilotage_test::doubled", lambda context, given: given * 2, lib=library)
    yield
    library._destroy()


def test_a_stage_that_cannot_be_compiled_is_named_and_all_stages_stay_on_their_graphs(operator_on_host, tmp_path):
    torch.manual_seed(0)
    heard, module, twin = [], OnHost(), OnHost()
    twin.load_state_dict(module.state_dict())
    step, plain = trainer(module, tmp_path, listeners=[heard.append]), Eager(twin)
    for batch in batches(3):
        close(step(*batch), plain(*batch))
    assert step.record.latest_tier == "graph"
    assert step._executor.session.ascent is None
    assert any(message.startswith("Stage 1: The program stays on the graph tier") for message in said(heard))
    pinned = trainer(OnHost(), tmp_path, tier="compiled")
    with pytest.raises(OptionError, match="Stage 1: The program calls pilotage_test::doubled"):
        pinned(*next(batches(1)))
