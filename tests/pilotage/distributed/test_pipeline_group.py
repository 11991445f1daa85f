"""Two processes of one instance, one per stage."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.distributed.peers import peers_here
from pilotage.distributed.pipeline_group import pipeline_group_here
from pilotage.errors import NonFiniteLossError, PilotageError
from pilotage.events import Warned

pytestmark = pytest.mark.slow


class Halves(nn.Module):
    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)
        self.dropout = nn.Dropout(dropout)
        self.last = nn.Linear(4, 2)

    def forward(self, x, target):
        pilotage.enter_stage(0)
        hidden = self.dropout(self.norm(self.first(x)))
        pilotage.enter_stage(1)
        output = self.last(self.dropout(hidden))
        return output, functional.cross_entropy(output, target)


def begin(*, dropout=0.0, start=0, **options):
    torch.manual_seed(start)
    module = Halves(dropout)
    settings = {"tier": "graph", "distributed": True, "gradient_accumulation": 2, "broadcast_buffers": False} | options
    return module, pilotage.training(module, torch.optim.Adam(module.parameters(), lr=0.05), **settings)


def batch(seed: int):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(8, 4, generator=generator), torch.randint(2, (8,), generator=generator)


def weights_of(module):
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


def stage() -> int:
    group = pipeline_group_here()
    return 0 if group is None else group.stage


def begin_apart():
    """The second stage has other seeds and data than the first."""
    warnings = []
    module, step = begin(
        start=stage(), listeners=[lambda e: warnings.append(e.message) if isinstance(e, Warned) else None]
    )
    for number in range(3):
        step(*batch(number + 100 * stage()))
    return weights_of(module), warnings


def draw():
    """The outputs and weights of a run with dropout."""
    module, step = begin(dropout=0.5, seed=3, outputs="all")
    outputs = torch.cat([step(*batch(number))[0] for number in range(2)])
    return outputs, weights_of(module)


def resume(folder: str):
    """Six steps at once, and the last three again in a model with other initial weights."""
    options = {"dropout": 0.3}
    module, step = begin(**options)
    for number in range(6):
        step(*batch(number))
        if number == 2:
            step.save_checkpoint(folder, 3, position={"batch": 3})
    again, resumed = begin(**options, start=9)
    resumed.compile(*batch(0))
    found = resumed.restore_checkpoint(folder)
    shown = weights_of(again)
    for number in range(found.step, 6):
        resumed(*batch(number))
    return weights_of(module), weights_of(again), shown, sorted(os.listdir(folder))


def overflow():
    """The warnings of training on infinite inputs, and the error if it has to stop."""
    warnings, x = [], torch.full((8, 4), float("inf"))
    listeners = [lambda e: warnings.append(e.message) if isinstance(e, Warned) else None]
    _, warned = begin(listeners=listeners)
    for _ in range(2):
        warned(x, batch(0)[1])
    module, stopped = begin(nonfinite_loss="raise")
    before = weights_of(module)["last.weight"]
    try:
        stopped(x, batch(0)[1])
    except NonFiniteLossError as error:
        return warnings, str(error), before, weights_of(module)["last.weight"]


def refused():
    """What stages in separate processes do not support."""
    found = {}
    for name, options in {
        "eager": {"tier": "eager"},
        "few": {"pipeline": "1f1b", "gradient_accumulation": 1},
        "unknown": {"pipeline": "sideways"},
    }.items():
        try:
            _, step = begin(**options)
            step(*batch(0))
        except PilotageError as error:
            found[name] = str(error)
    return found


def train_again():
    """Weights are read, changed and sent, also through a view; a program is detached and recaptured."""
    module, step = begin()
    view = module.first.weight.data
    step(*batch(0))
    assert torch.equal(view.clone(), module.first.weight)
    del view
    with torch.no_grad():
        module.last.weight.mul_(2)
    step._executor.send_weights()
    step(*batch(1))
    step.detach()
    step(*batch(2))
    state = step.optimizer_state_dict()
    step.destroy()
    step.compile(*batch(3))
    step.load_optimizer_state_dict(state)
    step(*batch(3))
    return weights_of(module)


def observe(folder: str):
    return {
        "peers": peers_here(),
        "apart": begin_apart(),
        "drawn": [draw(), draw()],
        "resumed": resume(str(Path(folder, "checkpoints"))),
        "overflow": overflow(),
        "refused": refused(),
        "again": train_again(),
    }


@pytest.fixture(scope="module")
def seen(shared_world, tmp_path_factory):
    """The results of both processes."""
    return shared_world(observe, 1, stages=2, folder=str(tmp_path_factory.mktemp("folder")))


@pytest.fixture(autouse=True)
def on_the_processor(monkeypatch):
    monkeypatch.setenv("PILOTAGE_BACKEND", "cpu")


def same(mine, theirs):
    torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)


def test_weights_and_data_are_those_of_the_first_stage(seen):
    reference, _ = begin_apart()
    for each in seen:
        weights, warnings = each["apart"]
        same(weights, reference)
        assert "stages would have started with different values of 4 tensors, including first.weight" in warnings[0]


def test_dropout_is_the_same_in_every_run_and_all_stages_see_the_same(seen):
    first, again = seen[0]["drawn"]
    for each in (again, *seen[1]["drawn"]):
        assert torch.equal(each[0], first[0])
        same(each[1], first[1])


def test_training_resumes_from_checkpoints_of_all_stages_as_if_never_stopped(seen):
    for each in seen:
        straight, resumed, shown, names = each["resumed"]
        assert all(torch.equal(straight[name], resumed[name]) for name in straight)
        assert not torch.equal(shown["last.weight"], resumed["last.weight"])
        assert names == ["checkpoint-00000003-0000-00.pilotage", "checkpoint-00000003-0000-01.pilotage"]


def test_every_stage_sees_a_nonfinite_loss_and_stops_before_the_update_on_request(seen):
    for each in seen:
        warnings, error, before, after = each["overflow"]
        (warning,) = warnings
        assert warning.startswith("The loss at update 1 is not finite.")
        assert error.startswith("The loss at update 1 is not finite.")
        assert torch.equal(before, after)


def test_all_stages_refuse_what_stages_in_processes_do_not_support(seen):
    for each in seen:
        refusals = each["refused"]
        assert "run in the tiers 'graph' and 'compiled'" in refusals["eager"]
        assert (
            "for each of the 2 stages, but there are 1. Raise gradient accumulation, or use 'gpipe'" in refusals["few"]
        )
        assert "Choose one of: '1f1b', 'gpipe', 'sharded'" in refusals["unknown"]


def test_weights_can_be_changed_and_programs_detached_and_captured_again(seen):
    reference = train_again()
    for each in seen:
        same(each["again"], reference)


def test_one_instance_of_several_processes_has_no_peers(seen):
    assert [each["peers"] for each in seen] == [None, None]
