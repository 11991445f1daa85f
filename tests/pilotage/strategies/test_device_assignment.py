from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

import pilotage
from pilotage.devices.cpu import CpuBackend
from pilotage.devices.registry import Choice
from pilotage.errors import OptionError
from pilotage.events import BackendChosen, Noted
from pilotage.options.batching import Batching
from pilotage.options.choices import Tier
from pilotage.options.execution import Execution
from pilotage.options.locations import Locations
from pilotage.runtime.executor import Executor
from pilotage.strategies.device_assignment import choose_cards

CPU = torch.device("cpu")


class FourCards(CpuBackend):
    """A machine with four cards, which have memory of their own."""

    capabilities = replace(
        CpuBackend.capabilities,
        name="cuda",
        device=torch.device("cuda", 0),
        label="cuda:0",
        devices=tuple(torch.device("cuda", number) for number in range(4)),
        has_own_memory=True,
    )


def chosen(execution, *, tier=Tier.GRAPH, trains=True, in_pipeline_group=False):
    told = []
    choice = Choice(FourCards(), tier, "a test asks for it")
    cards = choose_cards(execution, choice, trains=trains, in_pipeline_group=in_pipeline_group, tell=told.append)
    return [device.index for device in cards.of_replicas], told, cards.label(choice)


def execution(replicas, **settings):
    return Execution(batching=Batching(replicas=replicas, instances=settings.pop("instances", 1)), **settings)


@pytest.mark.parametrize(("replicas", "cards"), [(1, 0), (2, 2), (3, 3), (4, 4), (6, 3), (5, 0), (8, 4)])
def test_the_number_of_cards_must_divide_the_replicas(replicas, cards):
    found, told, label = chosen(execution(replicas))
    assert found == list(range(cards))
    assert label == ", ".join(f"cuda:{number}" for number in range(max(cards, 1)))
    assert told == []


def test_the_option_and_the_variable_name_the_cards(monkeypatch):
    assert chosen(execution(4, cards=("cuda:0", "cuda:2")))[0] == [0, 2]
    assert chosen(execution(4, cards=("cuda:0",)))[0] == []
    monkeypatch.setenv("PILOTAGE_CARDS", "cuda:0, cuda:3")
    assert chosen(execution(4))[0] == [0, 3]
    assert chosen(execution(4, cards=("cuda:0", "cuda:1")))[0] == [0, 1]


@pytest.mark.parametrize(
    ("cards", "said"),
    [
        (("cuda:1", "cuda:0"), "cuda:0 first"),
        (("cuda:0", "cpu"), "devices of the cuda backend"),
        (("cuda:0", "cuda:7"), "names cuda:7, which does not exist here"),
        (("cuda:0", "third"), "not a device"),
        ((), "nothing"),
    ],
)
def test_invalid_cards_are_refused(cards, said):
    with pytest.raises(OptionError, match=said):
        chosen(execution(2, cards=cards))


OBSTACLES = [
    ({"locations": Locations(optimizer=1)}, {}, "wait on the host"),
    ({"locations": Locations(activations=1)}, {}, "wait on the host"),
    ({"locations": Locations(shared_optimizer=1), "instances": 2}, {}, "divided among instances"),
]


@pytest.mark.parametrize(("settings", "surroundings", "said"), OBSTACLES)
def test_unsupported_features_use_one_card_or_are_refused(settings, surroundings, said):
    found, told, _ = chosen(execution(2, **settings), **surroundings)
    assert found == []
    assert [said in event.message for event in told if isinstance(event, Noted)] == [True]
    with pytest.raises(OptionError, match=said):
        chosen(replace(execution(2, **settings), cards=("cuda:0", "cuda:1")), **surroundings)


def test_compiled_replicas_run_on_several_cards():
    assert chosen(execution(2), tier=Tier.COMPILED)[0] == [0, 1]


def test_stages_in_processes_have_one_card_each():
    assert chosen(execution(2), in_pipeline_group=True)[0] == []


class Writing(nn.Linear):
    def forward(self, x):
        result = super().forward(x)
        x.zero_()
        return result


def test_replicas_that_share_and_write_inputs_stay_on_one_card():
    model = Executor(
        Writing(3, 3),
        execution=Execution(
            batching=Batching(replicas=2, replicas_per_input=2), backend="cpu", tier=Tier.GRAPH, cards=("cpu", "cpu")
        ),
    )
    with pytest.raises(OptionError, match="writes to its inputs"):
        model(torch.ones(4, 3))


def test_inputs_that_forward_writes_to_are_written_back():
    model = pilotage.inference(Writing(3, 3), replicas=2, backend="cpu", tier="graph", cards=["cpu", "cpu"])
    x = torch.ones(4, 3)
    model(x)
    assert x.eq(0).all()


def test_the_log_names_the_cards():
    events = []
    pilotage.inference(
        nn.Linear(3, 3), replicas=2, backend="cpu", tier="graph", cards=["cpu", "cpu"], listeners=[events.append]
    )(torch.ones(4, 3))
    assert [event.device for event in events if isinstance(event, BackendChosen)] == ["cpu"]
