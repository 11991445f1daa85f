"""Devices, processes and precisions that do not go together are refused."""

import pytest

from cosmictagger.configuration.choices import ComputeMode, ModeKind, Precision
from cosmictagger.configuration.compute_mode import present, processes, refusal
from cosmictagger.configuration.mode import Inference, Train
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


def set_variables(monkeypatch, variables):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def test_processes_may_work_together_or_each_for_itself(monkeypatch):
    set_variables(monkeypatch, TORCHRUN)
    assert refusals(minibatch_size=3) == []
    assert refusals(distributed=True) == []
    assert refusals(Inference(name=ModeKind.inference), distributed=True) == []


def test_events_must_be_divided_equally(monkeypatch):
    set_variables(monkeypatch, TORCHRUN)
    assert "multiple of 2" in refusals(distributed=True, minibatch_size=3)[0]


def test_under_poprun_replicas_come_from_poprun(monkeypatch):
    set_variables(monkeypatch, POPRUN)
    assert refusals(compute_mode=ComputeMode.IPU, minibatch_size=8, num_replicas=7) == []
    assert "multiple of 4" in refusals(compute_mode=ComputeMode.IPU, minibatch_size=6)[0]


def test_stages_need_a_single_process(monkeypatch):
    set_variables(monkeypatch, POPRUN)
    assert "needs one process so far" in refusals(compute_mode=ComputeMode.IPU, minibatch_size=8, stages=2)[0]


@pytest.mark.parametrize("name", ["XPU", "DPCPP"])
def test_a_missing_intel_card_is_refused(name):
    config = Configuration(run=Run(id="x", compute_mode=ComputeMode[name]))
    assert f"run.compute_mode={name} is not available" in next(present(config))


@pytest.mark.parametrize(
    ("precision", "compute_mode", "refused"),
    [
        (Precision.mixed, ComputeMode.CPU, False),
        (Precision.mixed, ComputeMode.GPU, False),
        (Precision.float16, ComputeMode.GPU, False),
        (Precision.float16, ComputeMode.HPU, False),
        (Precision.float16, ComputeMode.CPU, False),
        (Precision.bfloat16, ComputeMode.CPU, False),
        (Precision.float64, ComputeMode.CPU, False),
        (Precision.float64, ComputeMode.HPU, True),
        (Precision.float64, ComputeMode.IPU, True),
        (Precision.float32, ComputeMode.CPU, False),
    ],
)
def test_unsupported_precisions_are_refused(precision, compute_mode, refused):
    assert (refusal(precision, compute_mode) is not None) is refused
