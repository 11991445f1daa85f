"""When weights are copied between a module and its programs, and when not."""

from __future__ import annotations

import gc

import pytest
import torch
from torch import nn

import pilotage
from pilotage.errors import AttachmentError, NotCompiledError
from pilotage.optim.reading import read_optimizer
from pilotage.options.choices import Tier
from pilotage.options.execution import Execution
from pilotage.runtime.executor import Executor


def test_edits_on_the_host_reach_the_device_at_the_next_call(pair, assert_equal, assert_same_state):
    trained = pair()
    trained.train(2)
    for edit in (halve, zero_a_buffer, initialize, load):
        for module in (trained.module, trained.plain):
            edit(module)
        mine, theirs = trained.train(2)
        assert_equal(mine, theirs)
        assert_same_state(trained.module, trained.plain)


def halve_the_data(module):
    module.layer.weight.data.mul_(0.5)


def replace_the_data(module):
    nn.utils.vector_to_parameters(nn.utils.parameters_to_vector(module.parameters()) * 0.5, module.parameters())


def halve_by_numpy(module):
    array = module.layer.weight.detach().numpy()
    array *= 0.5


@pytest.mark.parametrize("edit", [halve_the_data, replace_the_data, halve_by_numpy])
def test_edits_that_torch_does_not_count_reach_a_processor_that_trains(edit, pair, assert_same_state):
    trained = pair()
    for _ in range(2):
        trained.train(2)
        for module in (trained.module, trained.plain):
            edit(module)
    trained.train()
    assert_same_state(trained.module, trained.plain)


def test_an_edit_through_data_that_was_taken_before_counts(pair, assert_same_state):
    trained = pair()
    views = [module.layer.weight.data for module in (trained.module, trained.plain)]
    for _ in range(2):
        trained.train()
        for view in views:
            view.mul_(0.5)
    trained.train()
    assert_same_state(trained.module, trained.plain)


def halve(module):
    with torch.no_grad():
        module.layer.weight.mul_(0.5)


def zero_a_buffer(module):
    module.norm.running_mean.zero_()


def initialize(module):
    torch.manual_seed(3)
    nn.init.xavier_uniform_(module.layer.weight)


def load(module):
    module.load_state_dict({name: tensor * 0.9 for name, tensor in module.state_dict().items()})


def test_statistics_that_the_host_gathers_reach_the_device(pair, assert_equal, assert_same_state):
    trained = pair()
    trained.train(2)
    batch = trained.batch()
    for module in (trained.module, trained.plain):
        module(batch)
    trained.train(2)
    assert_same_state(trained.module, trained.plain)


def test_an_edit_through_a_detached_view_that_was_taken_before_counts(pair, assert_same_state):
    trained = pair()
    views = [module.layer.weight.detach() for module in (trained.module, trained.plain)]
    trained.train(2)
    for view in views:
        view.mul_(0.5)
    trained.train(2)
    assert_same_state(trained.module, trained.plain)


def test_an_edit_keeps_the_buffers_of_the_other_replicas():
    class Count(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 1)
            self.register_buffer("total", torch.zeros(()))

        def forward(self, x):
            self.total.add_(x.sum())
            return self.layer(x).square().mean(), self.total.clone()

    module = Count()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    step = pilotage.training(module, optimizer, replicas=2, broadcast_buffers=False, tier="graph", outputs="all")
    step(torch.tensor([[1.0, 0.0], [5.0, 0.0]]))
    halve(module)
    assert step(torch.tensor([[1.0, 0.0], [5.0, 0.0]]))[1].tolist() == [2, 10]


def test_a_read_does_not_count_as_an_edit(pair, monkeypatch):
    trained = pair()
    trained.train()
    sent = []
    state = trained.executor.session.attached
    monkeypatch.setattr(state, "load_parameters", lambda parameters: sent.append(parameters))
    monkeypatch.setattr(state, "load_weights", lambda *weights: sent.append(weights))
    for _ in range(2):
        trained.module.state_dict()
        trained.module(trained.batch())
        trained.module.layer.weight.sum()
        trained.train()
    assert [set(each) for each in sent if each] == []


def test_without_following_the_module_edits_reach_the_device_only_when_they_are_sent(pair, assert_equal):
    # As PopTorch has it.
    trained = pair()
    plan = read_optimizer(trained.optimizer, {id(p): name for name, p in trained.module.named_parameters()})
    executor = Executor(trained.module, plan=plan, execution=Execution(tier=Tier.GRAPH))
    batch = trained.batch()
    assert_equal(executor(batch), trained.train_plain(batch))
    with torch.no_grad():
        trained.module.layer.weight.mul_(2)
    assert executor.weights.unsent_edits() == ["layer.weight"]
    assert_equal(executor(batch), trained.train_plain(batch))
    for module in (trained.module, trained.plain):
        halve(module)
    executor.send_weights()
    assert executor.weights.unsent_edits() == []
    assert_equal(executor(batch), trained.train_plain(batch))


def test_edits_before_the_first_call_are_used(pair, assert_equal):
    trained = pair()
    for module in (trained.module, trained.plain):
        with torch.no_grad():
            module.layer.weight.zero_()
    mine, theirs = trained.train()
    assert_equal(mine, theirs)


def test_edits_while_detached_are_used(pair, assert_equal, assert_same_state):
    trained = pair()
    trained.train(2)
    trained.step.detach()
    for module in (trained.module, trained.plain):
        with torch.no_grad():
            module.layer.weight.mul_(0.5)
    mine, theirs = trained.train(2)
    assert_equal(mine, theirs)
    assert_same_state(trained.module, trained.plain)


def test_weights_can_be_fetched_explicitly(pair, assert_same_state):
    trained = pair()
    assert not trained.executor.weights.fetch_if_needed()
    trained.train()
    assert trained.executor.weights.fetch_if_needed()
    assert trained.plain_again()
    assert not trained.executor.weights.fetch_if_needed()
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
def test_inference_uses_the_trained_weights_at_its_next_call(part_ways, pair, assert_equal):
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


def test_inference_of_a_submodule_sees_training_of_the_whole(pair, assert_equal):
    trained = pair()
    infer = pilotage.inference(trained.module.layer)
    batch = trained.batch()
    for _ in range(2):
        assert_equal(infer(batch), trained.plain.layer(batch).detach())
        trained.train()
    assert_equal(infer(batch), trained.plain.layer(batch).detach())


def test_inference_sees_edits_at_its_next_call(network, assert_equal):
    module = network().eval()
    infer = pilotage.inference(module)
    batch = torch.randn(3, 4)
    infer(batch)
    for edit in (halve, zero_a_buffer, initialize, load):
        edit(module)
        assert_equal(infer(batch), tuple(t.detach() for t in module(batch)))


def test_inference_of_a_part_sees_edits_while_another_program_trains_the_whole(pair, assert_equal):
    trained = pair()
    infer = pilotage.inference(trained.module.layer)
    batch = trained.batch()
    for _ in range(2):
        trained.train()
        infer(batch)
        halve(trained.module)
        assert_equal(infer(batch), trained.module.layer(batch).detach())
        halve(trained.plain)


def test_a_module_shows_the_buffers_that_inference_in_training_mode_has_changed(network, assert_equal):
    module = network()
    plain = network()
    plain.load_state_dict(module.state_dict())
    infer = pilotage.inference(module)
    for _ in range(3):
        batch = torch.randn(5, 4)
        infer(batch)
        plain(batch)
        assert_equal(dict(module.state_dict()), dict(plain.state_dict()))


@pytest.mark.parametrize("looks", [False, True])
def test_programs_that_train_one_module_in_turn_see_each_others_updates(looks, network, twins, assert_same_state):
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


def test_programs_that_share_a_submodule_see_each_others_updates(assert_equal, twins):
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
