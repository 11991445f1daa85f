"""A program on one device equals eager PyTorch, and owns its state."""

from __future__ import annotations

import copy
import runpy
from pathlib import Path

import pytest
import torch

import pilotage
from pilotage.devices.cpu import CpuBackend
from pilotage.errors import AttachmentError
from pilotage.options.batching import Batching
from pilotage.passes.stage_placement import place
from pilotage.program.graphs.straight_line import straight_line
from pilotage.strategies.single import SingleDevice

NUMBERS = [{}, {"gradient_accumulation": 2, "device_iterations": 2}, {"replicas": 2}]


def single(programs, module, batching, **settings):
    program = programs.captured(module, batching)
    schedule = programs.schedule_of(program, batching)
    return SingleDevice(program, schedule, CpuBackend(), programs.setup(batching), **settings)


@pytest.mark.parametrize("numbers", NUMBERS)
def test_a_single_device_equals_eager(programs, numbers):
    module, batching = programs.network(), Batching(**numbers)
    strategy = single(programs, module, batching)
    found = programs.trained(strategy, module, batching)
    torch.testing.assert_close(found, programs.trained_by_eager(programs.network(), batching))
    assert strategy.devices == (programs.CPU,)
    assert not strategy.needs_graph


@pytest.mark.long
def test_stages_that_take_turns_on_one_device_run_compiled_code(tmp_path):
    staged = runpy.run_path(str(Path(__file__).parents[1] / "staged.py"))["Staged"]
    torch.manual_seed(0)
    model = staged(2)
    eager = copy.deepcopy(model)
    options = {"backend": "cpu", "tier": "compiled", "cache_directory": tmp_path}
    trainer = pilotage.training(model, torch.optim.SGD(model.parameters(), lr=0.1), **options)
    optimizer = torch.optim.SGD(eager.parameters(), lr=0.1)
    x, target = torch.randn(8, 6), torch.randint(0, 6, (8,))
    for _ in range(3):
        trainer(x, target)
        optimizer.zero_grad()
        eager(x, target)[-1].backward()
        optimizer.step()
    assert trainer.record.latest_tier == "compiled"
    torch.testing.assert_close(dict(model.state_dict()), dict(eager.state_dict()), rtol=1e-4, atol=1e-5)


def test_without_state_nothing_runs(programs):
    module, batching = programs.network(), Batching()
    strategy = single(programs, module, batching)
    for use in (lambda: strategy.run(programs.batch(batching)), strategy.weights):
        with pytest.raises(AttachmentError, match="not attached"):
            use()
    state = programs.attached(strategy, module).state
    strategy.run(programs.batch(batching))
    assert strategy.state is state
    strategy.detach()
    assert strategy.state is None
    with pytest.raises(AttachmentError):
        strategy.run(programs.batch(batching))


def test_the_graphs_can_be_replaced_by_other_code(programs):
    module, batching = programs.network(), Batching()
    strategy = single(programs, module, batching)
    called = []

    def counted(call):
        return lambda *arguments: (called.append(len(arguments)), call(*arguments))[1]

    computations = strategy.program.computations
    calls = {action: counted(straight_line(each.graph)) for action, each in computations.items()}
    strategy.replace(strategy.program, [lambda device: calls])
    found = programs.trained(strategy, module, batching)
    torch.testing.assert_close(found, programs.trained_by_eager(programs.network(), batching))
    assert len(called) == 3


def test_the_times_of_a_call_are_known_on_the_processor(programs):
    module, batching = programs.network(), Batching(device_iterations=2)
    strategy = single(programs, module, batching)
    assert strategy.times is None
    programs.trained(strategy, module, batching, calls=1)
    times = strategy.times
    assert times.begun <= times.sent <= times.finished[0] <= times.finished[1] <= times.returned


def test_a_program_whose_stages_are_on_several_devices_says_so_and_runs_no_compiled_code(programs):
    module, batching = programs.network(), Batching()
    program = programs.captured(module, batching)
    placed = place(program, (programs.CPU, torch.device("meta")))
    schedule = programs.schedule_of(program, batching)
    strategy = SingleDevice(program, schedule, CpuBackend(), programs.setup(batching), placed)
    assert strategy.devices == (programs.CPU, torch.device("meta"))
    assert "on several cards" in strategy.needs_graph
    assert strategy.attach(program.plan).buffers()["seen"].device.type == "meta"
