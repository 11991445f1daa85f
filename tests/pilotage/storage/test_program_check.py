"""Programs whose parts do not fit together, or that need too much memory."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn
from torch.nn import functional

import poptorch
from pilotage.errors import ProgramFileError
from pilotage.storage.permission import TRUSTED, UNTRUSTED, Permission
from pilotage.storage.program_check import check_program, machine_memory
from pilotage.storage.program_text import program_from_data, program_to_data


class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Conv2d(1, 2, 3, padding=1)

    def forward(self, x):
        hidden = functional.max_pool2d(self.layer(x), 2)
        return hidden, hidden.square().mean()


@pytest.fixture(scope="module")
def written():
    """A trainer's program as stored in a file."""
    options = poptorch.Options().runOn("cpu", tier="graph")

    class Loss(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Pool()

        def forward(self, x):
            hidden, loss = self.inner(x)
            return hidden, poptorch.identity_loss(loss, reduction="none")

    whole = Loss()
    model = poptorch.trainingModel(whole, options, poptorch.optim.SGD(whole.parameters(), lr=0.1))
    model.compile(torch.ones(2, 1, 8, 8))
    data, constants = program_to_data(model.engine.session.captured)
    return json.dumps(data), constants


@pytest.fixture
def data(written):
    return json.loads(written[0])


@pytest.fixture
def check(data, written):
    """Read the data and check it."""

    def read(permission=UNTRUSTED):
        check_program(program_from_data(data, written[1], permission), permission)

    return read


def node_of(data, name):
    nodes = data["computations"]["train"]["nodes"]
    return next((number, node) for number, node in enumerate(nodes) if node["target"] == f"aten::{name}.default")


def test_an_unmodified_program_passes(check):
    check()


def test_the_limit_is_what_a_step_needs_at_its_peak(check):
    check(Permission(memory=1 << 20))
    with pytest.raises(ProgramFileError, match=r"A step \(train\) would need"):
        check(Permission(memory=2048))
    with pytest.raises(ProgramFileError, match="Its weights"):
        check(Permission(memory=16))


def test_the_default_limit_is_the_memory_of_the_machine(check, data):
    append_zeros(data, machine_memory() // 4)
    with pytest.raises(ProgramFileError, match="would need"):
        check()


def append_zeros(data, elements, name="zeros"):
    """Let the program allocate an unused tensor."""
    nodes = data["computations"]["train"]["nodes"]
    made = {
        "op": "call_function",
        "name": name,
        "target": "aten::zeros.default",
        "args": {"tuple": [[elements]]},
        "labels": [],
    }
    nodes.insert(-1, {**nodes[-1], **made})


def test_freed_values_are_not_counted(check, data):
    for number in range(100):
        append_zeros(data, 1 << 20, f"big_{number}")
    check(Permission(memory=16 << 20))


def test_unchecked_indices_must_come_from_forward(check, data):
    pooling, _ = node_of(data, "max_pool2d_with_indices")
    _, backward = node_of(data, "max_pool2d_with_indices_backward")
    indices = backward["args"]["tuple"][-1]["node"]
    nodes = data["computations"]["train"]["nodes"]
    assert nodes[indices]["args"]["tuple"] == [{"node": pooling}, 1]
    # Not made by forward.
    kept = dict(nodes[indices])
    nodes[indices] |= {"target": "aten::full.default", "args": {"tuple": [[2, 2, 4, 4], 2**40]}}
    nodes[indices]["kwargs"] = {"dict": {"dtype": {"dtype": "int64"}}}
    with pytest.raises(ProgramFileError, match="uses indices without a check"):
        check()
    check(TRUSTED)
    # Made by forward, and changed before use.
    nodes[indices] = kept
    unused = next(node for node in nodes[indices + 1 :] if node["op"] == "call_function")
    unused |= {"target": "aten::fill_.Scalar", "args": {"tuple": [{"node": indices}, 2**40]}, "kwargs": {"dict": {}}}
    with pytest.raises(ProgramFileError):
        check()


def test_shapes_that_a_kernel_relies_on_are_checked(check, data):
    _, backward = node_of(data, "max_pool2d_with_indices_backward")
    backward["args"]["tuple"][1] = {"node": 0}
    with pytest.raises(ProgramFileError, match=r"max_pool2d_with_indices_backward"):
        check()


@pytest.mark.parametrize("change", [lambda nodes: nodes.pop(0), lambda nodes: nodes[-1]["args"]["tuple"][0].pop()])
def test_a_graph_must_have_the_declared_inputs_and_outputs(change, check, data):
    change(data["computations"]["train"]["nodes"])
    with pytest.raises(ProgramFileError):
        check()


@pytest.mark.parametrize("permission", [UNTRUSTED, TRUSTED])
@pytest.mark.parametrize(("position", "value"), [(0, 1), (1, "no such value")])
def test_a_program_reads_only_numbers_that_its_optimizer_has(position, value, permission, check, data):
    values = data["layout"]["values"]
    next(each for each in values if each[0] is not None)[position] = value
    with pytest.raises(ProgramFileError, match="which has no such value"):
        check(permission)
