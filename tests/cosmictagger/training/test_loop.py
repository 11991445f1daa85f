"""The training loop: what it trains, when it validates and saves, and that a resumed run is the same run."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest
import torch

from cosmictagger.configuration.choices import LossBalanceScheme, OptimizerKind, Precision
from cosmictagger.configuration.network import A21
from cosmictagger.data.loader import Loader
from cosmictagger.data.synthetic import SyntheticEvents
from cosmictagger.devices.eager import EagerExecutor
from cosmictagger.networks.uresnet import build
from cosmictagger.processes.consistency import ConsistencyCheck
from cosmictagger.processes.process_group import Processes
from cosmictagger.records.checkpoints import Checkpoints, load
from cosmictagger.records.trace import TRACED
from cosmictagger.training.journal import Journal
from cosmictagger.training.loop import Periods, Training
from cosmictagger.training.optimizer import build_optimizer
from cosmictagger.training.precision import NUMBER_TYPES
from cosmictagger.training.schedule import WarmUp
from pilotage import World

NETWORK = replace(A21, depth=1, n_initial_filters=2, bottleneck_deepest=3, blocks_deepest_layer=1, blocks_per_layer=1)
CPU = torch.device("cpu")


def executor(seed=0):
    torch.manual_seed(seed)
    numbers = NUMBER_TYPES[Precision.float32]
    network = build(NETWORK, numbers.activations)
    optimizer = build_optimizer(OptimizerKind.adam, network.parameters(), 1e-3)
    return EagerExecutor(network, optimizer, LossBalanceScheme.focal, numbers, CPU)


def loader(seed=5):
    return Loader(SyntheticEvents(2, shape=(8, 12)), minibatch_size=2, downsample=0, seed=seed, workers=1)


class Run:
    """Trainings in one folder, whose threads and files end with the test."""

    def __init__(self, folder):
        self.folder, self._open = folder, []

    def __call__(self, *, seed=0, processes=None, validates=True, resumed_at=0, trace_folder=None, **periods):
        data, held_out = loader(), loader(6) if validates else None
        journal = Journal(self.folder, images_per_step=2, saver=False, resumed_at=resumed_at)
        self._open += [each for each in (data, held_out, journal) if each is not None]
        work = executor(seed)
        names = [name for name, _ in work.network.named_parameters()]
        return Training(
            executor=work,
            loader=data,
            held_out=held_out,
            schedule=WarmUp(peak=1e-2, minibatch_size=2, events=20),
            checkpoints=Checkpoints(self.folder / "checkpoints"),
            journal=journal,
            periods=Periods(**{"validation": 2, "checkpoint": 3} | periods),
            consistency=ConsistencyCheck(processes or Processes(), names),
            trace_folder=trace_folder,
        )

    def close(self):
        for each in self._open:
            each.close()

    def table(self, kind="train"):
        with (self.folder / f"{kind}_metrics.csv").open() as file:
            return list(csv.DictReader(file))


@pytest.fixture
def run(tmp_path):
    made = Run(tmp_path)
    yield made
    made.close()


def weights(training):
    return {name: value.clone() for name, value in training.executor.state()["state_dict"].items()}


def test_a_run_makes_the_updates_that_the_executor_makes_batch_by_batch(run):
    training = run()
    training.run(3)
    plain, batches = executor(), loader()
    outcomes = [plain.train([next(batches)], training.schedule.rate(step)) for step in range(3)]
    batches.close()
    torch.testing.assert_close(weights(training), dict(plain.state()["state_dict"]), rtol=0, atol=0)
    rows = run.table()
    assert [int(row["step"]) for row in rows] == [0, 1, 2]
    assert [float(row["loss"]) for row in rows] == [round(outcome.loss, 5) for outcome in outcomes]
    rates = [training.schedule.rate(step) for step in range(3)]
    assert [float(row["learning_rate"]) for row in rows] == pytest.approx(rates, rel=1e-5)
    assert training.samples == 6


def test_several_batches_make_one_update(run):
    training = run(accumulation=3, validates=False)
    training.run(1)
    plain, batches = executor(), loader()
    plain.train([next(batches) for _ in range(3)], training.schedule.rate(0))
    batches.close()
    torch.testing.assert_close(weights(training), dict(plain.state()["state_dict"]), rtol=0, atol=0)
    assert (training.step, training.samples) == (1, 6)


def test_validation_and_checkpoints_come_in_their_periods_and_the_last_step_is_saved(run):
    training = run(validation=2, checkpoint=3)
    training.run(5)
    assert [int(row["step"]) for row in run.table("test")] == [2, 4]
    assert training.checkpoints.steps() == [5, 3]


def test_without_held_out_events_nothing_is_validated(run):
    run(validates=False).run(3)
    assert not (run.folder / "test_metrics.csv").exists()


def test_a_resumed_run_is_the_same_run(run, tmp_path):
    whole = run(checkpoint=10)
    whole.run(4)
    other = Run(tmp_path / "other")
    first = other(checkpoint=2)
    first.run(2)
    second = other(seed=9, checkpoint=10)
    second.restore(load(first.checkpoints.path(2)))
    second.run(2)
    other.close()
    torch.testing.assert_close(weights(second), weights(whole), rtol=0, atol=0)
    assert (second.step, second.began, second.samples) == (4, 2, 8)
    assert second.loader.state() == whole.loader.state()
    assert second.held_out.state() == whole.held_out.state()


def test_iterations_count_from_the_first_attempt_after_a_restart(run):
    state = {**run().state(), "global_step": 7, "began": 4}
    training = run()
    training.restore(state)
    assert training.left(5) == 5
    training.restore(state, restarted=True)
    assert training.left(5) == 2
    assert training.left(2) == 0
    training.run(2)
    assert training.step == 7


def test_weights_of_another_run_start_with_their_own_data(run):
    first = run(checkpoint=10)
    first.run(2)
    training = run(seed=9)
    training.restore(first.state(), everything=False)
    torch.testing.assert_close(weights(training), weights(first), rtol=0, atol=0)
    assert training.loader.state()["batches"] == 0
    assert (training.step, training.samples) == (2, 0)


class Pair(Processes):
    """The first of two processes; the other one reports twice its numbers, and its own statistics."""

    def mean(self, values):
        return values * 1.5

    def gather(self, value):
        entries, sums = value
        return [value, ([entry + 1000 for entry in entries], sums)]

    def gather_tensors(self, values):
        return [values, {name: torch.full_like(tensor, 3) for name, tensor in values.items()}]


def test_processes_report_their_mean_and_keep_their_own_statistics(run):
    training = run(processes=Pair(world=World(rank=0, size=2)), checkpoint=1, validates=False)
    training.run(1)
    plain, batches = executor(), loader()
    outcome = plain.train([next(batches)], training.schedule.rate(0))
    batches.close()
    (row,) = run.table()
    assert float(row["loss"]) == pytest.approx(1.5 * outcome.loss, abs=1e-4)
    assert training.samples == 4
    assert training.consistency.steps == [1]
    state = load(training.checkpoints.path(1))
    statistics = {name for name in state["state_dict"] if name not in training.consistency.parameters}
    assert [set(each) for each in state["statistics"]] == [statistics, statistics]
    second = run(processes=Pair(world=World(rank=1, size=2)), validates=False)
    second.restore(state)
    own = weights(second)
    assert all(bool((own[name] == 3).all()) for name in statistics)
    alone = run(validates=False)
    alone.restore(state)
    torch.testing.assert_close(weights(alone), weights(training), rtol=0, atol=0)


def test_the_first_steps_are_traced(run):
    run(trace_folder=run.folder / "profiles", validates=False, checkpoint=100).run(TRACED + 1)
    traces = {path.name for path in (run.folder / "profiles").iterdir()}
    assert traces == {f"timeline_{step}.json" for step in range(TRACED)}


def test_each_iteration_is_in_the_profile_with_its_parts(run):
    training = run(validation=1, checkpoint=1)
    training.run(2)
    rows = np.array(training.journal.profile.rows, dtype=object)
    assert [row[0] for row in rows] == [0, 1]
    assert all(part >= np.timedelta64(0, "us") for row in rows for part in row[2:])
