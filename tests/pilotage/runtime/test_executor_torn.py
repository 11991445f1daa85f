"""An incomplete update is never used."""

from __future__ import annotations

import pytest
import torch

from pilotage.errors import TornStateError


def break_off(executor, monkeypatch, *, after_writing):
    """Make the next step fail, before or during its update."""
    walked = executor.session.strategy.executable
    (action,) = walked._calls
    whole = walked._calls[action]

    def fail(*arguments):
        if after_writing:
            arguments[0].add_(1)
        walked._calls[action] = whole
        raise KeyboardInterrupt

    monkeypatch.setitem(walked._calls, action, fail)


def test_after_an_incomplete_update_calls_are_refused_until_a_checkpoint_is_restored(
    pair, monkeypatch, assert_same_state, tmp_path
):
    both = pair()
    both.train(2)
    both.step.save_checkpoint(tmp_path, 2)
    assert_same_state(both.module, both.plain)
    break_off(both.executor, monkeypatch, after_writing=True)
    with pytest.raises(KeyboardInterrupt):
        both.step(both.batch())
    assert_same_state(both.module, both.plain)
    for use in (lambda: both.step(both.batch()), both.step.optimizer_state_dict, both.step.detach):
        with pytest.raises(TornStateError, match="Restore a checkpoint"):
            use()
    both.step.restore_checkpoint(tmp_path)
    both.train(2)
    assert_same_state(both.module, both.plain)


def test_a_step_that_fails_before_writing_leaves_the_state_usable(pair, monkeypatch, assert_same_state):
    both = pair()
    both.train(2)
    break_off(both.executor, monkeypatch, after_writing=False)
    with pytest.raises(KeyboardInterrupt):
        both.step(both.batch())
    both.train(2)
    assert_same_state(both.module, both.plain)


def test_a_model_with_an_incomplete_update_can_be_destroyed_and_trained_again(pair, monkeypatch):
    both = pair()
    both.train(2)
    shown = both.module.layer.weight.detach().clone()
    break_off(both.executor, monkeypatch, after_writing=True)
    with pytest.raises(KeyboardInterrupt):
        both.step(both.batch())
    both.step.destroy()
    assert torch.equal(both.module.layer.weight.detach(), shown)
    both.step(both.batch())
    assert not torch.equal(both.module.layer.weight.detach(), shown)
