"""Weights between a module and its programs: when they travel, and when they do not."""

from __future__ import annotations

import gc

import pytest
import torch
from torch import nn

import pilotage
from pilotage.errors import AttachmentError, NotCompiledError


def test_edits_on_the_host_reach_the_device_only_when_they_are_sent(pair, assert_equal, assert_same_state):
    trained = pair()
    trained.train(2)
    with torch.no_grad():
        trained.module.layer.weight.mul_(2)
    mine, theirs = trained.train()
    assert_equal(mine, theirs)
    assert_same_state(trained.module, trained.plain)

    for module in (trained.module, trained.plain):
        with torch.no_grad():
            module.layer.weight.mul_(2)
            module.norm.running_mean.zero_()
    trained.executor.send_weights()
    mine, theirs = trained.train()
    assert_equal(mine, theirs)
    assert_same_state(trained.module, trained.plain)


def test_edits_before_the_first_call_count(pair, assert_equal):
    trained = pair()
    for module in (trained.module, trained.plain):
        with torch.no_grad():
            module.layer.weight.zero_()
    mine, theirs = trained.train()
    assert_equal(mine, theirs)


def test_edits_while_detached_count(pair, assert_equal, assert_same_state):
    trained = pair()
    trained.train(2)
    trained.step.detach()
    for module in (trained.module, trained.plain):
        with torch.no_grad():
            module.layer.weight.mul_(0.5)
    mine, theirs = trained.train(2)
    assert_equal(mine, theirs)
    assert_same_state(trained.module, trained.plain)


def test_weights_can_be_fetched_on_purpose(pair, assert_same_state):
    trained = pair()
    assert not trained.executor.fetch_weights_if_needed()
    trained.train()
    assert trained.executor.fetch_weights_if_needed()
    assert trained.plain_again()
    assert not trained.executor.fetch_weights_if_needed()
    trained.train()
    trained.executor.fetch_weights()
    assert trained.plain_again()
    assert_same_state(trained.module, trained.plain)


def test_without_a_program_there_is_nothing_to_send_or_fetch(pair):
    trained = pair()
    with pytest.raises(NotCompiledError, match="has not been compiled"):
        trained.executor.send_weights()
    with pytest.raises(NotCompiledError):
        trained.executor.fetch_weights()
    trained.train()
    trained.step.detach()
    with pytest.raises(AttachmentError, match="not attached"):
        trained.executor.send_weights()


@pytest.mark.parametrize("part_ways", ["stay", "detach", "destroy", "delete"])
def test_inference_sees_what_training_did_at_its_next_call(part_ways, pair, assert_equal):
    trained = pair()
    trained.module.eval()
    infer = pilotage.inference(trained.module)
    trained.module.train()

    def assert_up_to_date():
        batch = trained.batch()
        trained.plain.eval()
        assert_equal(infer(batch), tuple(t.detach() for t in trained.plain(batch)))
        trained.plain.train()

    assert_up_to_date()
    for _ in range(2):
        trained.train()
        if part_ways == "detach":
            trained.step.detach()
        elif part_ways == "destroy":
            trained.step.destroy()
            trained.plain_optimizer.state.clear()
        elif part_ways == "delete":
            trained.step = None
            gc.collect()
            trained.plain_optimizer.state.clear()
        assert_up_to_date()
        assert_up_to_date()
        if part_ways == "delete":
            trained.step = pilotage.training(trained.module, trained.optimizer)
    assert infer.record.compilations == 1


def test_inference_of_a_part_sees_what_training_the_whole_did(pair, assert_equal):
    trained = pair()
    infer = pilotage.inference(trained.module.layer)
    batch = trained.batch()
    for _ in range(2):
        assert_equal(infer(batch), trained.plain.layer(batch).detach())
        trained.train()
    assert_equal(infer(batch), trained.plain.layer(batch).detach())


def test_inference_keeps_its_weights_while_nobody_trains(network, assert_equal):
    module = network().eval()
    infer = pilotage.inference(module)
    batch = torch.randn(3, 4)
    before = infer(batch)
    with torch.no_grad():
        module.layer.weight.zero_()
    assert_equal(infer(batch), before)
    infer._executor.send_weights()
    assert_equal(infer(batch), tuple(t.detach() for t in module(batch)))


def test_a_look_at_the_weights_does_not_make_inference_load_them_again(pair, assert_equal):
    trained = pair()
    infer = pilotage.inference(trained.module.layer)
    trained.train()
    batch = trained.batch()
    expected = infer(batch)
    with torch.no_grad():
        trained.module.layer.weight.zero_()
    assert_equal(infer(batch), expected)


def test_buffers_that_inference_changes_come_home_on_purpose_alone(network, assert_equal):
    module = network()
    plain = network()
    plain.load_state_dict(module.state_dict())
    infer = pilotage.inference(module)
    batch = torch.randn(5, 4)
    infer(batch)
    plain(batch)
    assert_equal(module.norm.running_mean, torch.zeros(3))
    infer._executor.fetch_weights()
    assert_equal(dict(module.state_dict()), dict(plain.state_dict()))


@pytest.mark.parametrize("looks", [False, True])
def test_two_programs_that_train_one_module_in_turn_go_on_from_each_other(looks, network, twins, assert_same_state):
    mine, theirs = twins(network)
    first, second = (pilotage.training(mine, torch.optim.SGD(mine.parameters(), lr=lr)) for lr in (0.1, 0.01))
    optimizers = [torch.optim.SGD(theirs.parameters(), lr=lr) for lr in (0.1, 0.01)]
    for turn in (0, 0, 1, 0, 1, 1):
        batch = torch.randn(4, 4)
        (first, second)[turn](batch)
        optimizers[turn].zero_grad()
        theirs(batch)[1].backward()
        optimizers[turn].step()
        if looks:
            assert_same_state(mine, theirs)
    assert_same_state(mine, theirs)


def test_programs_that_share_a_part_go_on_from_each_other(assert_equal, twins):
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.shared = nn.Linear(3, 3)
            self.left, self.right = nn.Linear(3, 3), nn.Linear(3, 3)

    def heads(both):
        return nn.Sequential(both.shared, both.left), nn.Sequential(both.shared, both.right)

    mine, theirs = twins(Two)
    loss = nn.MSELoss()
    programs = [pilotage.training(h, torch.optim.SGD(h.parameters(), lr=0.1), loss=loss) for h in heads(mine)]
    plain = [(h, torch.optim.SGD(h.parameters(), lr=0.1)) for h in heads(theirs)]
    for turn in (0, 1, 1, 0):
        batch = torch.randn(2, 3), torch.randn(2, 3)
        programs[turn](*batch)
        head, optimizer = plain[turn]
        optimizer.zero_grad()
        loss(head(batch[0]), batch[1]).backward()
        optimizer.step()
    assert_equal(dict(mine.state_dict()), dict(theirs.state_dict()))
