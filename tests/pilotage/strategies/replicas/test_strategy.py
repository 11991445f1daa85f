"""Replicas on several cards equal eager PyTorch; the cards are the processor, listed several times."""

from __future__ import annotations

import pytest
import torch

from pilotage.errors import AttachmentError
from pilotage.options.batching import Batching
from pilotage.program.graphs.straight_line import straight_line
from pilotage.strategies.replicas.strategy import ReplicasOnCards

NUMBERS = [{}, {"gradient_accumulation": 2, "device_iterations": 2}]


def on_cards(programs, module, batching, **settings):
    program = programs.captured(module, batching)
    schedule = programs.schedule_of(program, batching)
    return ReplicasOnCards(program, schedule, [programs.CPU] * 2, programs.setup(batching, **settings))


@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize("replicas", [2, 4])
def test_replicas_on_cards_equal_eager(programs, replicas, numbers):
    module, batching = programs.network(), Batching(replicas=replicas, **numbers)
    strategy = on_cards(programs, module, batching)
    found = programs.trained(strategy, module, batching)
    torch.testing.assert_close(found, programs.trained_by_eager(programs.network(), batching))
    first, copy = strategy.state.parts
    torch.testing.assert_close(copy.parameters, first.parameters, rtol=0, atol=0)
    assert [*strategy.state.replicas] == [*range(replicas)]
    assert strategy.state.updates_of_call == batching.device_iterations


def test_gradients_of_other_instances_are_added_once_for_all_cards(programs):
    exchanged = []

    def exchange(flat):
        exchanged.append(flat.clone())
        flat.mul_(2)
        return lambda: None

    module, batching = programs.network(), Batching(replicas=2)
    before = {name: weight.detach().clone() for name, weight in module.named_parameters()}
    several = on_cards(programs, module, batching, exchange=exchange)
    programs.trained(several, module, batching, calls=1)
    assert len(exchanged) == 1
    _, once = programs.trained_by_eager(programs.network(), batching, calls=1)
    for card in several.state.parts:
        for name, weight in card.parameters.items():
            # Without momentum yet, twice the gradient makes twice the step.
            torch.testing.assert_close(weight - before[name], 2 * (once[name] - before[name]))


def test_copies_are_refreshed_after_an_outside_write(programs):
    module, batching = programs.network(), Batching(replicas=2)
    state = programs.attached(on_cards(programs, module, batching), module).state
    state.parameters["first.weight"].fill_(3)
    state.refresh_copies()
    assert all(card.parameters["first.weight"].eq(3).all() for card in state.parts)


def test_an_update_incomplete_on_one_card_makes_the_state_unusable(programs, monkeypatch):
    module, batching = programs.network(), Batching(replicas=2)
    strategy = programs.attached(on_cards(programs, module, batching), module)
    first = strategy._workers[0]
    run_segment, last = first.run_segment, len(strategy._shares[0].segments) - 1

    def fail(segment):
        if segment == last:
            raise KeyboardInterrupt
        run_segment(segment)

    monkeypatch.setattr(first, "run_segment", fail)
    with pytest.raises(KeyboardInterrupt):
        strategy.run(programs.batch(batching))
    assert strategy.state.torn
    assert not any(card.flat_gradients.any() for card in strategy.state.parts)
    strategy.state.load_weights(dict(module.named_parameters()), dict(module.named_buffers()))
    assert strategy.state.torn == {"the state of the optimizer"}


def test_without_state_nothing_runs(programs):
    module, batching = programs.network(), Batching(replicas=2)
    strategy = on_cards(programs, module, batching)
    with pytest.raises(AttachmentError):
        strategy.run(programs.batch(batching))
    programs.attached(strategy, module).detach()
    assert strategy.state is None


def test_another_form_of_the_program_runs_on_every_card_and_on_the_same_state(programs):
    module, batching = programs.network(), Batching(replicas=2)
    strategy = programs.attached(on_cards(programs, module, batching), module)
    before, asked = strategy.state, []

    def code(device):
        asked.append(device)
        return {action: straight_line(part.graph) for action, part in strategy.program.computations.items()}

    strategy.replace(strategy.program, [code])
    assert not strategy.needs_graph
    assert strategy.state is before
    assert asked == [torch.device("cpu")] * 2
    expected, _ = programs.trained_by_eager(programs.network(), batching, calls=1)
    torch.testing.assert_close(strategy.run(programs.batch(batching)), expected[0])
    assert strategy.with_schedule(strategy.schedule).state is before
    assert len(asked) == 4
