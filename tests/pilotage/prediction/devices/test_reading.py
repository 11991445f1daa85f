import pytest

from pilotage.errors import OptionError
from pilotage.prediction.devices import device_model, known_models
from pilotage.prediction.devices.reading import read_model

GOOD = """
title = "My card"
kind = "card"

[memory]
capacity_bytes = 8_000_000_000

[compute]
float32 = 10e12
float16 = 20e12
bfloat16 = 20e12

[traffic]
memory = 5e11

[overheads]
operation_seconds = 2e-6

[products]
processors = 40

[host]
link_bytes_per_second = 1e10

[link]
bytes_per_second = 1e10
"""


def test_every_own_model_can_be_read():
    models = {name: device_model(name) for name in known_models()}
    assert {"mk1", "mk2", "bow", "h200", "gaudi2", "cpu"} <= models.keys()
    assert models["mk2"].tiles.count == 1472
    assert models["h200"].memory.capacity_bytes > 140e9
    assert all(model.assumptions for model in models.values())


def test_an_ipu_has_the_memory_of_its_tiles():
    for name in ("mk1", "mk2", "bow"):
        model = device_model(name)
        assert model.memory.capacity_bytes == model.tiles.count * model.tiles.memory_bytes


def test_a_file_is_a_model(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    model = device_model(str(path))
    assert (model.name, model.title, model.memory.capacity_bytes) == ("mine", "My card", 8_000_000_000)


def test_a_folder_adds_models(tmp_path, monkeypatch):
    (tmp_path / "mine.toml").write_text(GOOD)
    monkeypatch.setenv("PILOTAGE_DEVICE_MODELS", str(tmp_path))
    assert device_model("mine").title == "My card"
    monkeypatch.setenv("PILOTAGE_DEVICE_MODELS", str(tmp_path / "nowhere"))
    with pytest.raises(OptionError, match="not a folder"):
        known_models()


def test_an_unknown_name_is_refused_with_those_that_exist():
    with pytest.raises(OptionError, match=r"No device model is named 'bo'.*mk1"):
        device_model("bo")


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ('kind = "card"', 'kind = "toaster"', "kind is 'toaster'"),
        ("capacity_bytes = 8_000_000_000", "", r"memory.capacity_bytes is missing"),
        ("capacity_bytes = 8_000_000_000", "capacity_bytes = 1.5", "whole number"),
        ("memory = 5e11", "memory = -1", "traffic.memory is -1"),
        ("memory = 5e11", 'memory = "fast"', "traffic.memory is 'fast'"),
        ("memory = 5e11", "memory = 5e11\nmemori = 1", r"'memori' in \[traffic\] is unknown"),
        ('kind = "card"', 'kind = "ipu"', r"\[tiles\]"),
        ("[products]\nprocessors = 40", "", r"needs a section \[products\]"),
        ("[memory]", "[memory", "not TOML"),
        ('title = "My card"', "title = 3", "must be a text"),
    ],
)
def test_a_wrong_file_is_refused_with_what_is_wrong(tmp_path, before, after, problem):
    path = tmp_path / "mine.toml"
    path.write_text(GOOD.replace(before, after))
    with pytest.raises(OptionError, match=problem):
        read_model(path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(OptionError, match="cannot be read"):
        device_model(str(tmp_path / "nothing.toml"))
