import copy
import pickle
from types import SimpleNamespace

import numpy
import pytest
import torch
from torch import nn

from pilotage.proof.watching.saving import SaveWatch, _tables_in
from pilotage.proof.watching.settings import WatchSettings
from pilotage.proof.watching.watch import Watch


@pytest.fixture
def training(tmp_path):
    """A model with its watch, and a function that trains it once."""
    torch.manual_seed(0)
    watch = Watch(WatchSettings(folder=str(tmp_path)))
    model = nn.Linear(6, 4)

    def train():
        watch.before_update(model.named_parameters)
        watch.weights = model.named_parameters
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += 0.01 * torch.randn_like(parameter)

    return SaveWatch(watch), model, train


def kind(saves, content):
    (table,) = [table for table in _tables_in(content, 4) if table]
    return saves._kind_of(table)


def test_present_initial_earlier_and_foreign_weights_are_told_apart(training):
    saves, model, train = training
    initial = copy.deepcopy(model.state_dict())
    assert kind(saves, {"model": initial}) == "early"
    for _ in range(4):
        train()
    earlier = copy.deepcopy(model)
    train()
    assert kind(saves, model.state_dict()) == "present"
    assert kind(saves, {"epoch": 3, "model": initial}) == "initial"
    assert kind(saves, earlier) == "trained"
    assert kind(saves, nn.Linear(6, 4).state_dict()) == "other"
    assert kind(saves, {"mean": torch.zeros(9)}) is None


def test_the_name_of_a_file_is_recorded(training, tmp_path, monkeypatch):
    saves, model, train = training
    train()
    noted = []
    monkeypatch.setattr(saves._watch, "note", lambda event, **fields: noted.append(fields["file"]))
    monkeypatch.setattr("pilotage.proof.watching.saving.users_line", lambda: "port.py:3")
    save = saves._following(torch.save)
    save(model.state_dict(), tmp_path / "model.pt")
    with (tmp_path / "other.pt").open("wb") as file:
        save(model.state_dict(), f=file)
    assert noted == ["model.pt", None]


def test_a_part_of_a_model_is_distinguished_from_other_parts_of_equal_shapes(tmp_path):
    torch.manual_seed(0)
    watch = Watch(WatchSettings(folder=str(tmp_path)))
    model = nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 2))
    saves = SaveWatch(watch)
    watch.before_update(model.named_parameters)
    watch.weights = model.named_parameters
    last = copy.deepcopy(model[1:])
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.01 * torch.randn_like(parameter)
    assert kind(saves, model[1:].state_dict()) == "present"
    assert kind(saves, last.state_dict()) == "initial"


def test_what_is_saved_and_where_may_be_given_by_name(training, tmp_path, monkeypatch):
    saves, model, train = training
    train()
    noted = []
    monkeypatch.setattr(saves._watch, "note", lambda event, **fields: noted.append((fields["file"], fields["holds"])))
    monkeypatch.setattr("pilotage.proof.watching.saving.users_line", lambda: "port.py:3")
    saves._following(torch.save)(obj=model.state_dict(), f=tmp_path / "model.pt")
    saves._following(torch.save)(model.state_dict(), f=tmp_path / "other.pt")
    saves._following(lambda tensors, filename: None)(filename="model.safetensors", tensors=model.state_dict())
    assert noted == [("model.pt", "present"), ("other.pt", "present"), ("model.safetensors", "present")]
    assert torch.load(tmp_path / "model.pt").keys() == model.state_dict().keys()


def test_weights_that_are_not_finite_are_recognised_as_the_present_ones(training):
    saves, model, train = training
    train()
    initial = copy.deepcopy(model.state_dict())
    with torch.no_grad():
        model.weight[1, 2] = float("nan")
    assert kind(saves, model.state_dict()) == "present"
    assert kind(saves, initial) == "other"


def test_weights_that_are_saved_as_arrays_are_seen(training, tmp_path, monkeypatch):
    saves, model, train = training
    initial = {name: each.numpy().copy() for name, each in model.state_dict().items()}
    train()
    arrays = {name: each.numpy() for name, each in model.state_dict().items()}
    noted = []
    monkeypatch.setattr(saves._watch, "note", lambda event, **fields: noted.append((fields["file"], fields["holds"])))
    monkeypatch.setattr("pilotage.proof.watching.saving.users_line", lambda: "port.py:3")
    functions = SimpleNamespace(savez=numpy.savez, savez_compressed=numpy.savez_compressed)
    saves.follow_arrays(functions)
    functions.savez(tmp_path / "model.npz", **arrays)
    functions.savez_compressed(file=tmp_path / "first.npz", **initial)
    functions.savez(tmp_path / "counts.npz", numpy.arange(3))
    with (tmp_path / "model.pkl").open("wb") as file:
        saves._following(pickle.dump)({"model": arrays}, file, protocol=4)
    assert noted == [("model.npz", "present"), ("first.npz", "initial"), ("counts.npz", None), (None, "present")]
    assert numpy.load(tmp_path / "model.npz").keys() == arrays.keys()
