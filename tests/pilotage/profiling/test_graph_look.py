"""A look at a program's operations computes what the program computes, and sees every operation."""

import copy
from pathlib import Path

import pytest
import torch
from torch import nn

import pilotage
from pilotage.prediction.trace.modules import naming_modules
from pilotage.profiling.graph_look import ProgramLook


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(16, 32)
        self.norm = nn.BatchNorm1d(32)
        self.second = nn.Linear(32, 4)

    def forward(self, x):
        hidden = torch.relu(self.norm(self.first(x)))
        return self.second(hidden)


def training(model: nn.Module, **options):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    return pilotage.training(model, optimizer, loss=nn.functional.cross_entropy, backend="cpu", tier="graph", **options)


@pytest.fixture(scope="module")
def looked():
    """A program that ran twice as it is and once under a look, one that ran three times, and the look."""
    torch.manual_seed(0)
    model = Model()
    twin = copy.deepcopy(model)
    batches = [(torch.randn(8, 16), torch.randint(4, (8,))) for _ in range(3)]
    observed, plain = training(model), training(twin)
    with naming_modules(model):
        observed(*batches[0])
    session = observed._executor.session
    look = ProgramLook(session.program, session.schedule, session.attached, session.streams, "module.")
    observed(*batches[1])
    session.run([tensor.clone() for tensor in batches[2]], look)
    observed._executor.weights.trained.changed()
    for batch in batches:
        plain(*batch)
    return observed, plain, look


def test_a_call_under_a_look_trains_like_any_other(looked):
    observed, plain, _ = looked
    theirs = plain._executor.session.whole_weights()
    for name, tensor in observed._executor.session.whole_weights().items():
        assert torch.equal(tensor, theirs[name]), name


def test_every_operation_has_its_time_phase_and_place(looked):
    _, _, look = looked
    sightings = look.table.sightings
    names = [each.what.name for each in sightings]
    assert names.count("aten.addmm") == 2
    assert all(len(each.seconds) == 1 and each.seconds[0] >= 0 for each in sightings)
    assert [each.what.phase for each in sightings] == sorted(
        (each.what.phase for each in sightings), key=["forward", "backward", "update"].index
    )
    first = next(each.what for each in sightings if each.what.name == "aten.addmm")
    assert first.module == "first"
    assert first.output == "f32[8,32]"
    assert first.flops == 2 * 8 * 16 * 32
    assert first.bytes == 4 * (32 + 8 * 16 + 16 * 32 + 8 * 32)
    file, _, number = first.line.rpartition(":")
    assert Path(file).name == "test_graph_look.py"
    assert "self.first(x)" in Path(file).read_text().splitlines()[int(number) - 1]


def test_memory_is_that_of_the_state_and_of_living_values(looked):
    _, _, look = looked
    peak = look.table.peak
    parameters = sum(each.numel() for each in Model().parameters())
    assert peak.by_category["optimizer"] == 2 * 4 * parameters
    assert peak.by_category["weights"] >= 4 * parameters
    assert peak.bytes == sum(peak.by_category.values()) == sum(each.bytes for each in peak.live)
    assert peak.bytes == max(sum(each.by_category.values()) for each in look.table.sightings)
    kept = {each.name: each for each in peak.live}
    assert kept["first.weight"].bytes == 4 * 16 * 32


def test_freed_memory_is_no_longer_counted(looked):
    _, _, look = looked
    activations = [each.by_category.get("activations", 0) for each in look.table.sightings]
    assert max(activations) >= 4 * 8 * 32
    assert activations[-1] < max(activations)


def test_accumulation_runs_forward_several_times_in_an_update():
    torch.manual_seed(0)
    train = training(Model(), gradient_accumulation=3)
    batch = torch.randn(24, 16), torch.randint(4, (24,))
    train(*batch)
    session = train._executor.session
    look = ProgramLook(session.program, session.schedule, session.attached, session.streams)
    session.run(list(batch), look)
    runs = {each.what.phase: each.runs for each in look.table.sightings}
    assert runs == {"forward": 3, "backward": 3, "update": 1}
    assert all(len(each.seconds) == each.runs for each in look.table.sightings)
