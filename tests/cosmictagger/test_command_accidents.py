"""Bugs of published ports: each is refused, or named in the placement report."""

from dataclasses import replace

import pytest
import torch

import poptorch
from cosmictagger.configuration.choices import ComputeMode, OptimizerKind, Precision
from cosmictagger.configuration.mode import Optimizer, Train
from cosmictagger.configuration.network import A21
from cosmictagger.configuration.root import Configuration
from cosmictagger.configuration.run import Run
from cosmictagger.data.events import Batch
from cosmictagger.devices.choosing import device_for
from cosmictagger.errors import DeviceError
from cosmictagger.processes.consistency import ConsistencyCheck
from cosmictagger.processes.process_group import Processes
from cosmictagger.records.report import placement_lines
from pilotage import PilotageError, World

SMALL = replace(A21, depth=0, n_initial_filters=2, bottleneck_deepest=2, blocks_deepest_layer=1)


def ipu(kind=OptimizerKind.adam, precision=Precision.float32):
    torch.manual_seed(0)
    run = Run(id="x", compute_mode=ComputeMode.IPU, precision=precision)
    mode = Train(optimizer=Optimizer(name=kind))
    config = Configuration(run=run, mode=mode, network=SMALL)
    return device_for(config).executor(config)


def batch():
    generator = torch.Generator().manual_seed(1)
    image = torch.rand(1, 3, 8, 8, generator=generator)
    entries = torch.arange(1).numpy()
    return Batch((image).numpy(), (image * 3).byte().numpy(), entries, torch.zeros(1, 3).long().numpy())


def report(executor):
    return "\n".join(placement_lines(executor.placement(), asked="IPU", samples=1))


# A wrapper that is lost by .to(device)


def test_moving_the_wrapped_network_is_refused():
    wrapped = poptorch.inferenceModel(ipu().network)
    with pytest.raises(PilotageError, match=r"\.to\(\) was called on a wrapped model"):
        wrapped.to(torch.device("cpu"))


def test_a_bare_network_instead_of_the_wrapper_is_refused(monkeypatch):
    monkeypatch.setattr(poptorch, "trainingModel", lambda module, options, optimizer: module)
    with pytest.raises(DeviceError, match="bare LossInForward, which would train on the host"):
        ipu()


# A wrapper that was given another optimizer


@pytest.fixture
def wrapper_with_its_own_optimizer(monkeypatch):
    """Like the port: SGD for the wrapper, and the configured optimizer never set."""
    wrap = poptorch.trainingModel

    def careless(module, options, optimizer):
        return wrap(module, options, poptorch.optim.SGD(module.parameters(), lr=1e-3))

    monkeypatch.setattr(poptorch, "trainingModel", careless)


@pytest.mark.parametrize("kind", [OptimizerKind.adam, OptimizerKind.rmsprop])
def test_an_optimizer_that_never_steps_is_named(wrapper_with_its_own_optimizer, monkeypatch, kind):
    monkeypatch.setattr(poptorch.PoplarExecutor, "setOptimizer", lambda self, optimizer: None)
    executor = ipu(kind)
    executor.train([batch()], 1e-3)
    name = type(executor._optimizer).__name__
    assert f"PROBLEM.........: optimizer: {name} was requested but never stepped" in report(executor)


def test_the_configured_optimizer_replaces_the_wrappers(wrapper_with_its_own_optimizer):
    executor = ipu()
    executor.train([batch()], 1e-3)
    assert "PROBLEM" not in report(executor)
    assert "optimizer.......: Adam, stepped 1 times" in report(executor)


# A precision that is ignored


def test_an_ignored_precision_is_named():
    executor = ipu(precision=Precision.float16)
    executor.network.float().compute_type = torch.float32
    executor.train([batch()], 1e-3)
    said = report(executor)
    assert "precision.......: float32 activations, float32 weights" in said
    assert (
        "PROBLEM.........: precision: float16 activations were requested, but float32 activations were computed" in said
    )


# Instances that never exchange gradients


class Two(Processes):
    """Two processes, the other one with given weights and events."""

    def gather(self, value):
        return [value, self.other]


def two(entries, checksums):
    processes = Two(world=World(rank=0, size=2))
    object.__setattr__(processes, "other", (entries, checksums))
    return processes


def test_different_weights_end_the_run():
    weights = {"w": torch.ones(3)}
    consistency = ConsistencyCheck(two([1], {"w": 5}), ["w"])
    with pytest.raises(DeviceError, match="gradients are not exchanged"):
        consistency.check(1, [0], weights)
    assert "NOT CHECKED" in consistency.describe(1)


def test_shared_events_end_the_run():
    consistency = ConsistencyCheck(two([0], {}), [])
    with pytest.raises(DeviceError, match="both given event 0"):
        consistency.check(1, [0], {})


@pytest.mark.timeout(1500)
@pytest.mark.long
def test_processes_that_do_not_exchange_gradients_are_stopped(start, tmp_path, few_events):
    """Real processes, with the exchange disabled."""
    words = (
        "run.id=x",
        "network=a21",
        "network.depth=2",
        "network.n_initial_filters=4",
        "network.bottleneck_deepest=8",
    )
    data = (
        "data.downsample=5",
        "data.events=6",
        "data.aux_events=4",
        "data=generated",
        f"data.data_directory={few_events}",
    )
    patch = tmp_path / "sitecustomize.py"
    patch.write_text(
        "import sys, importlib.abc, importlib.util\n"
        "import torch.nn.parallel as parallel\n"
        "class Bare(parallel.DistributedDataParallel):\n"
        "    def forward(self, *given):\n"
        "        with self.no_sync():\n"
        "            return super().forward(*given)\n"
        "parallel.DistributedDataParallel = Bare\n"
    )
    folder = tmp_path / "out"
    shared = (f"output_dir={folder}", "run.distributed=true", "run.iterations=3", "run.saver=false")
    codes, said = start(*words, *data, *shared, by="mpirun", instances=2, PYTHONPATH=str(tmp_path)).finish()
    assert codes == [2, 2], said
    assert "gradients are not exchanged" in said
    assert not list((folder / "checkpoints").glob("model-*"))


@pytest.mark.slow
def test_processes_that_train_separately_have_their_own_folders(start, tmp_path):
    """Published ports did this in one folder, where the processes overwrote each other's files."""
    words = ("data=synthetic", "network=a21", "network.depth=1", "data.downsample=6", "run.iterations=2")
    given = (*words, "run.id=x", "run.saver=false", f"output_dir={tmp_path / 'out'}", "run.distributed=False")
    codes, said = start(*given, by="mpirun", instances=2).finish()
    assert codes == [0, 0], said
    assert said.count("each of them works independently") == 2
    for folder in (tmp_path / "out", tmp_path / "out" / "process_1"):
        assert (folder / "train_metrics.csv").read_text().count("\n") == 3
        assert (folder / "checkpoints" / "model-2.ckpt").is_file()
