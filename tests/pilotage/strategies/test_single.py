"""A program on one device equals eager PyTorch, and owns its state."""

from __future__ import annotations

import pytest
import torch

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
    assert strategy.runs_compiled_code


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
    strategy.replace(strategy.program, calls)
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
    assert not strategy.runs_compiled_code
    assert strategy.attach(program.plan).buffers()["seen"].device.type == "meta"
