from __future__ import annotations

import pytest
import torch

from pilotage.devices.registry import backends, choose
from pilotage.errors import OptionError
from pilotage.options.choices import Tier

HAS_CUDA = torch.cuda.is_available()


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    monkeypatch.delenv("PILOTAGE_BACKEND", raising=False)


def test_the_cpu_is_always_available_and_chosen_last():
    assert [*backends()] == ["cuda", "hpu", "cpu"]
    assert backends()["cpu"].problem() is None


@pytest.mark.skipif(HAS_CUDA, reason="there is a CUDA device here")
def test_without_a_request_the_best_available_backend_is_chosen_and_others_are_explained():
    choice = choose()
    assert (choice.capabilities.name, choice.tier) == ("cpu", Tier.GRAPH)
    assert choice.reason.startswith("the best device present (no cuda: ")
    assert "; no hpu: habana_frameworks is the drop-in that emulates the card)" in choice.reason
    assert str(choice) == f"Running on cpu, tier graph: {choice.reason}."


@pytest.mark.parametrize("name", ["cpu", "CPU"])
def test_the_environment_chooses(monkeypatch, name):
    monkeypatch.setenv("PILOTAGE_BACKEND", name)
    choice = choose()
    assert choice.capabilities.name == "cpu"
    assert choice.reason == "PILOTAGE_BACKEND asks for it"


def test_the_option_chooses_over_the_environment(monkeypatch):
    monkeypatch.setenv("PILOTAGE_BACKEND", "nonsense")
    monkeypatch.setenv("PILOTAGE_TIER", "graph")
    choice = choose("cpu", Tier.EAGER)
    assert (choice.capabilities.name, choice.tier, choice.reason) == (
        "cpu",
        Tier.EAGER,
        "the backend option asks for it",
    )


@pytest.mark.skipif(HAS_CUDA, reason="there is a CUDA device here")
def test_an_absent_card_is_refused_with_an_explanation(monkeypatch):
    with pytest.raises(OptionError, match=r"the backend option is 'cuda', but .*CUDA.* Choose one of: cpu\."):
        choose("cuda")
    monkeypatch.setenv("PILOTAGE_BACKEND", "cuda")
    with pytest.raises(OptionError, match="PILOTAGE_BACKEND is 'cuda', but"):
        choose()


def test_an_absent_gaudi_is_refused_with_an_explanation(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(OptionError, match=r"'hpu', but habana_frameworks.torch is not installed"):
        choose("hpu")


@pytest.mark.parametrize(("asked", "hint"), [("tpu", ""), ("", ""), ("cpu ", r" Did you mean cpu\?")])
def test_an_unknown_backend_is_refused_with_those_that_are_known(asked, hint):
    with pytest.raises(
        OptionError, match=rf"No backend named .*\(the backend option\)\.{hint} Choose one of: cuda, hpu, cpu"
    ):
        choose(asked)


def test_the_environment_chooses_the_tier(monkeypatch):
    monkeypatch.setenv("PILOTAGE_TIER", "Eager")
    assert choose("cpu").tier is Tier.EAGER
    monkeypatch.setenv("PILOTAGE_TIER", "")
    assert choose("cpu").tier is Tier.GRAPH


def test_an_unknown_tier_is_refused_with_those_that_are_known(monkeypatch):
    monkeypatch.setenv("PILOTAGE_TIER", "fast")
    with pytest.raises(OptionError, match=r"PILOTAGE_TIER is 'fast'. Choose one of: eager, graph"):
        choose("cpu")
