from __future__ import annotations

import json
import os
import shutil
import zipfile
from pathlib import Path

import pytest
import torch
from torch import nn

import pilotage
from pilotage.errors import OptionError, ProgramFileError
from pilotage.events import Warned
from pilotage.runtime.checkpoints.folder import Checkpoints


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.4), nn.Linear(6, 2))

    def forward(self, x, y):
        output = self.layers(x)
        return output, nn.functional.cross_entropy(output, y)


def batch(step: int):
    generator = torch.Generator().manual_seed(step)
    return torch.randn(16, 4, generator=generator), torch.randint(2, (16,), generator=generator)


def begin(start: int, **options):
    torch.manual_seed(start)
    module = Network()
    optimizer = torch.optim.Adam(module.parameters(), lr=0.05)
    return module, pilotage.training(module, optimizer, tier="graph", broadcast_buffers=False, **options)


@pytest.mark.parametrize(
    "options", [{}, {"replicas": 2, "gradient_accumulation": 2, "seed": 8}], ids=["alone", "replicas"]
)
def test_training_resumes_as_if_never_interrupted(tmp_path, options, assert_same_state):
    module, step = begin(1, **options)
    losses = []
    for number in range(6):
        losses.append(step(*batch(number))[1])
        if number == 2:
            step.save_checkpoint(tmp_path, number + 1, position={"epoch": 1, "batch": number})

    other, resumed = begin(99, **options)
    resumed.compile(*batch(0))
    found = resumed.restore_checkpoint(tmp_path)
    assert (found.step, found.position) == (3, {"epoch": 1, "batch": 2})
    again = [resumed(*batch(number))[1] for number in range(found.step, 6)]
    assert all(torch.equal(*pair) for pair in zip(losses[3:], again, strict=True))
    assert_same_state(module, other)


def test_after_restoring_the_module_shows_the_saved_weights(tmp_path):
    module, step = begin(1)
    step(*batch(0))
    step.save_checkpoint(tmp_path, 1)
    saved = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    other, resumed = begin(2)
    resumed.compile(*batch(0))
    resumed.restore_checkpoint(tmp_path)
    assert all(torch.equal(tensor, saved[name]) for name, tensor in other.state_dict().items())


def steps_in(folder):
    return sorted(int(path.name.split("-")[1]) for path in folder.glob("checkpoint-*"))


def save(step, folder, *numbers, **options):
    for number in numbers:
        step(*batch(number))
        step.save_checkpoint(folder, number, **options)


def resumed(folder, start=99):
    """Another process of the same run, as far as its files can tell."""
    warnings = []
    module, step = begin(start, listeners=[lambda e: warnings.append(e.message) if isinstance(e, Warned) else None])
    step.compile(*batch(0))
    return module, step, step.restore_checkpoint(folder), warnings


def damage(path: Path, place: int = -1) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 255
    path.write_bytes(data)


def path_of(folder, number):
    return folder / f"checkpoint-{number:08d}-0000.pilotage"


def test_the_newest_checkpoints_are_kept_and_unfinished_files_are_removed(tmp_path):
    _, step = begin(1)
    step.compile(*batch(0))
    assert step.restore_checkpoint(tmp_path / "empty") is None
    save(step, tmp_path, *range(1, 6), keep=3)
    assert sorted(path.name for path in tmp_path.iterdir()) == [path_of(tmp_path, each).name for each in (3, 4, 5)]
    (tmp_path / f".{path_of(tmp_path, 6).name}.half-written").write_bytes(b"")
    assert step.restore_checkpoint(tmp_path).step == 5
    assert not list(tmp_path.glob(".*"))


def test_a_new_run_is_refused_in_the_folder_of_another_and_nothing_is_removed(tmp_path):
    save(begin(1)[1], tmp_path, 8, 9, 10)
    _, new = begin(2)
    new(*batch(1))
    with pytest.raises(
        OptionError, match=r"contains checkpoints of another run; the last one is step 10 .*restore_checkpoint"
    ):
        new.save_checkpoint(tmp_path, 1)
    assert steps_in(tmp_path) == [8, 9, 10]
    new.save_checkpoint(tmp_path / "own", 1)
    assert steps_in(tmp_path / "own") == [1]
    assert resumed(tmp_path)[2].step == 10
    with pytest.raises(OptionError, match="another run"):
        new.save_checkpoint(tmp_path, 2)


def test_a_restored_run_continues_in_its_own_folders(tmp_path):
    last, best = tmp_path / "last", tmp_path / "best"
    _, step = begin(1)
    save(step, last, 1, 2)
    step.save_checkpoint(best, 2)
    _, again, found, warnings = resumed(last)
    assert (found.step, warnings) == (2, [])
    save(again, last, 3, 4)
    again.save_checkpoint(best, 4)
    assert (steps_in(last), steps_in(best)) == ([2, 3, 4], [2, 4])


def test_the_last_written_file_is_kept_even_if_older_ones_have_higher_steps(tmp_path):
    _, step = begin(1)
    save(step, tmp_path, 8, 9, 10, keep=3)
    for number in (1, 2, 3):
        path = step.save_checkpoint(tmp_path, number, keep=3)
        assert path.is_file()
        assert resumed(tmp_path)[2].step == number
    assert steps_in(tmp_path) == [1, 2, 3]


@pytest.mark.parametrize("way", ["header", "tensor", "cut", "empty"])
def test_a_damaged_file_is_skipped_by_name_and_written_again(tmp_path, way):
    module, step = begin(1)
    save(step, tmp_path, 1, 2, 3)
    expected = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    last = path_of(tmp_path, 3)
    if way in ("cut", "empty"):
        os.truncate(last, 100 if way == "cut" else 0)
    else:
        damage(last, 500 if way == "header" else -1)
    _, again, found, warnings = resumed(tmp_path)
    assert found.step == 2
    (warning,) = warnings
    assert str(last) in warning
    assert warning.endswith("Training continues from step 2.")
    save(again, tmp_path, 3)
    other, _, found, warnings = resumed(tmp_path)
    assert (found.step, warnings) == (3, [])
    # Dropout continues its random stream, so that the lost step is repeated exactly.
    assert all(torch.equal(tensor, expected[name]) for name, tensor in other.state_dict().items())


def test_training_does_not_restart_if_every_file_is_damaged(tmp_path):
    save(begin(1)[1], tmp_path, 1, 2)
    damage(path_of(tmp_path, 1))
    os.truncate(path_of(tmp_path, 2), 10)
    with pytest.raises(ProgramFileError, match=r"No checkpoint in .* is complete") as refused:
        resumed(tmp_path)
    assert all(str(path_of(tmp_path, number)) in str(refused.value) for number in (1, 2))


def test_training_does_not_restart_beside_files_of_only_other_processes(tmp_path):
    """Files of instance 1 or of a job with stages, while this process has none."""
    save(begin(1)[1], tmp_path, 1, 2)
    for path in list(tmp_path.iterdir()):
        path.rename(path.with_name(path.name.replace("-0000.", "-0000-01.")))
    names = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(
        ProgramFileError, match=r"0000 has none; there are also files of 0000-01, which this job does not have"
    ):
        resumed(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_files_of_an_abandoned_attempt_are_removed_first(tmp_path):
    """Nothing is overwritten: 8 has to be kept longer than 9 and 10, which are damaged."""
    save(begin(1)[1], tmp_path, 8, 9, 10, keep=3)
    damage(path_of(tmp_path, 9))
    damage(path_of(tmp_path, 10))
    _, again, found, _ = resumed(tmp_path)
    assert found.step == 8
    save(again, tmp_path, 11, keep=3)
    assert steps_in(tmp_path) == [8, 10, 11]
    save(again, tmp_path, 12, 13, keep=3)
    assert steps_in(tmp_path) == [11, 12, 13]


def test_files_that_cannot_be_read_are_never_removed(tmp_path):
    _, step = begin(1)
    save(step, tmp_path, 1, 2, keep=2)
    os.truncate(path_of(tmp_path, 1), 10)
    save(step, tmp_path, 3, 4, keep=2)
    assert steps_in(tmp_path) == [1, 3, 4]


def test_a_file_under_the_name_of_another_step_is_damaged(tmp_path):
    save(begin(1)[1], tmp_path, 1, 2)
    shutil.copy(path_of(tmp_path, 1), path_of(tmp_path, 7))
    _, _, found, (warning,) = resumed(tmp_path)
    assert found.step == 2
    assert "its name says step 7, but its content 1" in warning


def test_checkpoints_of_two_runs_in_one_folder_are_refused(tmp_path):
    save(begin(1)[1], tmp_path, 1)
    save(begin(2)[1], tmp_path / "other", 2)
    shutil.copy(path_of(tmp_path / "other", 2), path_of(tmp_path, 2))
    with pytest.raises(ProgramFileError, match="contains checkpoints of 2 runs"):
        resumed(tmp_path)


def test_a_checkpoint_of_another_model_is_refused_before_anything_changes(tmp_path):
    save(begin(1)[1], tmp_path, 1)
    torch.manual_seed(4)
    module = nn.Sequential(nn.Linear(4, 1))
    step = pilotage.training(module, torch.optim.SGD(module.parameters(), lr=0.1), loss=nn.MSELoss(), tier="graph")
    step.compile(torch.ones(2, 4), torch.ones(2, 1))
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    with pytest.raises(OptionError, match=r"checkpoint-00000001-0000\.pilotage was written from another model"):
        step.restore_checkpoint(tmp_path)
    assert all(torch.equal(tensor, before[name]) for name, tensor in module.state_dict().items())


def test_a_checkpoint_with_other_shapes_is_refused(tmp_path):
    def wrapped(outputs):
        module = nn.Sequential(nn.Linear(4, outputs))
        step = pilotage.training(module, torch.optim.SGD(module.parameters(), lr=0.1), loss=nn.MSELoss(), tier="graph")
        step.compile(torch.ones(2, 4), torch.ones(2, outputs))
        return step

    wrapped(1).save_checkpoint(tmp_path, 1)
    # One output would be broadcast to three silently.
    with pytest.raises(OptionError, match=r"0\.weight is \(1, 4\) torch\.float32 in the file and \(3, 4\)"):
        wrapped(3).restore_checkpoint(tmp_path)


def test_checkpoints_of_format_1_can_be_restored(tmp_path):
    shutil.copytree(Path(__file__).with_name("format_1"), tmp_path, dirs_exist_ok=True)
    with zipfile.ZipFile(path_of(tmp_path, 3)) as archive:
        entry, shape, _ = json.loads(archive.read("content.json"))["tensors"]["parameter/layers.0.weight"]
        saved = torch.frombuffer(bytearray(archive.read(entry)), dtype=torch.float32).reshape(shape)
    module, again, found, warnings = resumed(tmp_path)
    assert (found.step, found.position, warnings) == (3, {"epoch": 1, "batch": 2}, [])
    assert torch.equal(module.layers[0].weight, saved)
    save(again, tmp_path, 4, 5, 6, keep=3)
    assert steps_in(tmp_path) == [4, 5, 6]
    with pytest.raises(OptionError, match="another run"):
        save(begin(3)[1], tmp_path, 7)


def test_a_checkpoint_is_on_the_disk_when_saving_returns(tmp_path, monkeypatch):
    done = []
    fsync = os.fsync

    def noted(handle):
        fsync(handle)
        done.append(Path(os.readlink(f"/proc/self/fd/{handle}")))

    monkeypatch.setattr(os, "fsync", noted)
    save(begin(1)[1], tmp_path, 1)
    assert [path.name.startswith(".checkpoint-00000001-0000.pilotage.") for path in done] == [True, False]
    assert done[1] == tmp_path


def test_a_checkpoint_can_be_read_with_plain_safetensors(tmp_path):
    from safetensors.torch import load_file

    module, step = begin(1)
    save(step, tmp_path, 1)
    tensors = load_file(path_of(tmp_path, 1))
    assert torch.equal(tensors["parameter/layers.0.weight"], module.layers[0].weight)
    assert torch.equal(tensors["buffer/0/layers.1.running_mean"], module.layers[1].running_mean)


@pytest.mark.parametrize(
    "position", [{1: 2}, {"a": [{2: 3}]}, torch.ones(1), {"a": {1, 2}}], ids=["key", "inner key", "tensor", "set"]
)
def test_a_position_that_does_not_survive_json_is_refused(tmp_path, position):
    _, step = begin(1)
    step.compile(*batch(0))
    with pytest.raises(OptionError, match=r"position (has|contains)"):
        step.save_checkpoint(tmp_path, 1, position=position)
    with pytest.raises(OptionError, match="step is -1"):
        step.save_checkpoint(tmp_path, -1)
    assert not list(tmp_path.iterdir())


def test_keeping_fewer_than_two_checkpoints_is_refused():
    with pytest.raises(OptionError, match="At least 2 must stay"):
        Checkpoints("anywhere", keep=1)
