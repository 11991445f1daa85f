"""Processes and surroundings that a configuration asks for."""

import pytest

from cosmictagger.configuration.choices import ComputeMode, ModeKind
from cosmictagger.configuration.framework import Torch
from cosmictagger.configuration.mode import Inference, Train
from cosmictagger.configuration.places import places, processes, surroundings
from cosmictagger.configuration.root import Configuration
from cosmictagger.configuration.run import Run

POPRUN = {
    "POPDIST_NUM_TOTAL_REPLICAS": "4",
    "POPDIST_NUM_LOCAL_REPLICAS": "2",
    "POPDIST_REPLICA_INDEX_OFFSET": "2",
}
TORCHRUN = {"RANK": "1", "WORLD_SIZE": "2"}


def refusals(mode=None, **run):
    return list(processes(Configuration(run=Run(id="x", **run), mode=mode or Train())))


def told(monkeypatch, variables):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def test_processes_that_would_train_apart_are_refused(monkeypatch):
    told(monkeypatch, TORCHRUN)
    assert "each would train a network of its own" in refusals()[0]
    assert refusals(distributed=True) == []


def test_events_have_to_be_shared_equally(monkeypatch):
    told(monkeypatch, TORCHRUN)
    assert "multiple of 2" in refusals(distributed=True, minibatch_size=3)[0]


def test_poprun_gives_out_replicas_and_makes_processes_one(monkeypatch):
    told(monkeypatch, POPRUN)
    assert refusals(compute_mode=ComputeMode.IPU, minibatch_size=8, num_replicas=7) == []
    assert "multiple of 4" in refusals(compute_mode=ComputeMode.IPU, minibatch_size=6)[0]
    assert "network of its own" in refusals(compute_mode=ComputeMode.CPU, minibatch_size=8)[0]


def test_stages_stay_in_one_process(monkeypatch):
    told(monkeypatch, POPRUN)
    assert "for one process so far" in refusals(compute_mode=ComputeMode.IPU, minibatch_size=8, stages=2)[0]


def test_other_modes_run_in_one_process(monkeypatch):
    told(monkeypatch, TORCHRUN)
    assert "runs in one process" in refusals(Inference(name=ModeKind.inference), distributed=True)[0]


@pytest.mark.parametrize(("lazy", "value"), [(True, "1"), (False, "0")])
def test_lazy_mode_is_said_before_habanas_package_is_imported(lazy, value):
    chosen = Configuration(run=Run(id="x", compute_mode=ComputeMode.HPU, lazy_mode=lazy))
    assert surroundings(chosen)["PT_HPU_LAZY_MODE"] == value


def test_an_ipus_tier_is_pinned_unless_somebody_pins_another(monkeypatch):
    chosen = Configuration(run=Run(id="x", compute_mode=ComputeMode.IPU))
    assert surroundings(chosen)["PILOTAGE_TIER"] == "graph"
    monkeypatch.setenv("PILOTAGE_TIER", "eager")
    assert surroundings(chosen)["PILOTAGE_TIER"] == "eager"
    chosen.framework = Torch(environment_variables={"PILOTAGE_TIER": "compiled"})
    assert surroundings(chosen)["PILOTAGE_TIER"] == "compiled"


def test_an_xpu_that_is_absent_is_refused():
    chosen = Configuration(run=Run(id="x", compute_mode=ComputeMode.XPU))
    assert "finds no XPU" in next(places(chosen))


@pytest.mark.parametrize(("visible", "own"), [("", "1"), ("4,5,6", "5"), ("7", "7")])
def test_each_process_sees_a_card_of_its_own(monkeypatch, visible, own):
    chosen = Configuration(run=Run(id="x", compute_mode=ComputeMode.GPU, distributed=True))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert "CUDA_VISIBLE_DEVICES" not in surroundings(chosen)
    told(monkeypatch, {**TORCHRUN, "LOCAL_RANK": "1"})
    assert surroundings(chosen)["CUDA_VISIBLE_DEVICES"] == own
