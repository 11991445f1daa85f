"""A compiled program from its compilation to its end."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from pilotage.errors import AttachmentError, InputError, TornStateError
from pilotage.options.choices import Tier
from pilotage.program.layout import Slot


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        return functional.mse_loss(self.layer(x), torch.ones(3, 2))


X = torch.randn(3, 4, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def session(compilation):
    """A session whose state has the weights of its module."""
    compiled, call, _ = compilation(Plain(), X)
    session = compiled.session(*call)
    attach(session, compiled)
    return session


def attach(session, compiled):
    session.attach(compiled.plan)
    session.attached.load_weights(dict(compiled.module.named_parameters()), {})


def test_calls_equal_eager(session):
    plain = Plain()
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        optimizer.zero_grad()
        loss = plain(X)
        loss.backward()
        optimizer.step()
        (found,) = session.run([X])
        assert torch.equal(found, loss.detach())
    torch.testing.assert_close(dict(session.whole_weights()), plain.state_dict(), rtol=0, atol=0)
    momentum = optimizer.state[plain.layer.weight]["momentum_buffer"]
    state = session.optimizer_state()
    assert torch.equal(state.slots[Slot("momentum_buffer", "layer.weight")], momentum)
    assert (state.updates, state.loss_scale) == (3, 1)


def test_a_session_is_attached_once_and_runs_only_then(compilation):
    compiled, call, _ = compilation(Plain(), X)
    session = compiled.session(*call)
    for use in (lambda: session.attached, lambda: session.run([X])):
        with pytest.raises(AttachmentError, match="not attached"):
            use()
    attach(session, compiled)
    with pytest.raises(AttachmentError, match="already attached"):
        session.attach(compiled.plan)


def test_the_optimizers_state_survives_while_the_program_is_detached(session, compilation):
    session.run([X])
    before = session.optimizer_state()
    session.detach()
    assert session.state is None
    assert session.optimizer_state() is session.kept_optimizer
    session.attach(session.captured.plan)
    torch.testing.assert_close(session.optimizer_state().slots, before.slots, rtol=0, atol=0)
    assert session.optimizer_state().updates == 1


def test_a_state_set_while_detached_is_used_when_attached(session):
    session.run([X])
    saved = session.optimizer_state()
    session.run([X])
    session.detach()
    session.set_optimizer_state(saved)
    session.attach(session.captured.plan)
    assert session.optimizer_state().updates == 1


def test_optimizer_state_of_other_processes_is_gathered(session):
    session.run([X])
    other = {("momentum_buffer", "elsewhere"): torch.ones(1)}
    session.gather = lambda mine: [mine, other]
    whole = session.whole_optimizer_state()
    assert {slot.parameter for slot in whole.slots} == {"layer.weight", "layer.bias", "elsewhere"}
    assert {slot.parameter for slot in session.optimizer_state().slots} == {"layer.weight", "layer.bias"}


def test_a_call_under_another_autocast_is_refused(session):
    session.check_call()
    with torch.autocast("cpu", torch.bfloat16), pytest.raises(InputError, match="captured without autocast"):
        session.check_call()


def test_an_interrupted_update_is_refused_until_everything_is_loaded_again(session):
    saved = session.optimizer_state()
    session.attached.torn = session.attached.all_parts
    for use in (session.check_call, session.refuse_torn, session.optimizer_state):
        with pytest.raises(TornStateError, match="weights"):
            use()
    session.attached.load_weights(dict(session.attached.parameters), {})
    with pytest.raises(TornStateError, match="the state of the optimizer on the device"):
        session.check_call()
    session.set_optimizer_state(saved)
    session.check_call()


def test_the_moments_of_a_call_are_kept(session):
    assert (session.device, session.tier) == ("cpu", Tier.GRAPH)
    assert session.times is None
    session.run([X])
    assert session.times.returned >= session.times.begun
