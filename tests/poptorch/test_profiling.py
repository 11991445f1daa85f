import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

import poptorch
from poptorch.profiling import Channel


class Worker:
    def add(self, a, b=1):
        """Add two numbers."""
        return a + b

    def fail(self):
        raise KeyError("mine")


def names_in(profiled):
    return [event.key for event in profiled.key_averages()]


def test_a_tracepoint_shows_in_torchs_profiler():
    with profile(activities=[ProfilerActivity.CPU], acc_events=True) as profiled, Channel("mine").tracepoint("working"):
        torch.ones(2).add(1)
    assert "mine: working" in names_in(profiled)


def test_instrumented_methods_show_in_torchs_profiler_and_do_what_they_did():
    worker = Worker()
    assert Channel("mine").instrument(worker, "add", "fail") is worker
    with profile(activities=[ProfilerActivity.CPU], acc_events=True) as profiled:
        assert worker.add(1, b=2) == 3
        with pytest.raises(KeyError):
            worker.fail()
    assert {"mine: add", "mine: fail"} <= set(names_in(profiled))
    assert worker.add.__doc__ == "Add two numbers."
    assert worker.add(1) == 2


def test_without_a_profiler_nothing_happens():
    with pytest.raises(KeyError), Channel("mine").tracepoint("working"):
        raise KeyError


@pytest.mark.slow
def test_work_of_an_executor_appears_in_torchs_profiler(tmp_path):
    file, x = tmp_path / "model.poptorch", torch.ones(1, 2)
    with profile(activities=[ProfilerActivity.CPU], acc_events=True) as profiled:
        model = poptorch.inferenceModel(nn.Linear(2, 3))
        model.compileAndExport(file, x)
        model(x)
        other = poptorch.inferenceModel(nn.Linear(2, 3))
        other.loadExecutable(file)
    spans = ("modelCompilation", "compileAndExport", "saveExecutableToFile", "modelExecution", "loadExecutable")
    assert {f"poptorch.inferenceModel: {span}" for span in spans} <= set(names_in(profiled))
