"""Writing, indexing, pruning and finding checkpoints."""

import zipfile

import numpy as np
import pytest
import torch

from cosmictagger.errors import CheckpointError
from cosmictagger.records.checkpoints import Checkpoints, find, load


def state(step):
    return {"global_step": step, "state_dict": {"weight": torch.full((2,), float(step))}, "optimizer": {}}


def test_the_newest_five_are_kept_and_indexed(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    for step in (5, 10, 15, 20, 25, 30, 100):
        checkpoints.save(step, state(step))
    assert checkpoints.steps() == [100, 30, 25, 20, 15]
    assert (tmp_path / "checkpoint").read_text().splitlines() == [
        "latest: model-100.ckpt",
        "100: model-100.ckpt",
        "30: model-30.ckpt",
        "25: model-25.ckpt",
        "20: model-20.ckpt",
        "15: model-15.ckpt",
    ]
    assert load(checkpoints.latest())["global_step"] == 100


def test_the_last_written_checkpoint_outlives_abandoned_higher_steps(tmp_path):
    checkpoints = Checkpoints(tmp_path, keep=3)
    for step in (8, 9, 10):
        checkpoints.save(step, state(step))
    kept = []
    for step in (1, 2, 3):
        assert checkpoints.save(step, state(step)).is_file()
        kept.append((checkpoints.steps(), find(str(tmp_path)).name))
    assert kept == [([10, 9, 1], "model-1.ckpt"), ([10, 2, 1], "model-2.ckpt"), ([3, 2, 1], "model-3.ckpt")]


def test_unfinished_files_are_ignored_and_removed(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, state(1))
    for name in ("model-2.ckpt.part", ".model-3.ckpt.0a1b2c3d.part", ".checkpoint.0a1b2c3d.part"):
        (tmp_path / name).write_bytes(b"half")
    assert checkpoints.latest().name == "model-1.ckpt"
    checkpoints.sweep()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint", "model-1.ckpt"]


def test_an_instance_removes_only_its_own_files(tmp_path):
    names = {f".model-2-{number}.ckpt.0a1b2c3d.part" for number in range(2)}
    names |= {".checkpoint.0a1b2c3d.part", ".checkpoint-1.0a1b2c3d.part"}
    for name in names:
        (tmp_path / name).write_bytes(b"half")
    Checkpoints(tmp_path, instance=1).sweep()
    assert {path.name for path in tmp_path.iterdir()} == {".model-2-0.ckpt.0a1b2c3d.part", ".checkpoint.0a1b2c3d.part"}


def test_a_checkpoint_holds_only_plain_data(tmp_path):
    path = Checkpoints(tmp_path).save(3, state(3))
    assert torch.load(path, weights_only=True)["global_step"] == 3


@pytest.mark.parametrize("place", ["", "checkpoints", "checkpoints/checkpoint", "checkpoints/model-7.ckpt"])
def test_weights_are_found_by_run_folder_index_or_file(tmp_path, place):
    Checkpoints(tmp_path / "checkpoints").save(7, state(7))
    assert find(str(tmp_path / place)) == tmp_path / "checkpoints/model-7.ckpt"


def test_a_location_without_weights_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="holds no checkpoint"):
        find(str(tmp_path))


def test_a_checkpoint_of_the_original_with_numpys_numbers_loads(tmp_path):
    path = tmp_path / "model-1.ckpt"
    torch.save(state(1) | {"scheduler": {"_last_lr": [np.float64(1e-3)]}}, path)
    assert load(path)["global_step"] == 1


def test_a_checkpoint_that_was_written_with_numpy_1_loads(tmp_path):
    """Most files of the original: its reader of events needs numpy 1."""
    new, old = tmp_path / "new.ckpt", tmp_path / "old.ckpt"
    torch.save(state(1) | {"scheduler": {"_last_lr": [np.float64(1e-3)]}}, new)
    with zipfile.ZipFile(new) as given, zipfile.ZipFile(old, "w") as changed:
        for name in given.namelist():
            changed.writestr(name, given.read(name).replace(b"numpy._core.multiarray", b"numpy.core.multiarray"))
    assert b"numpy.core.multiarray" in old.read_bytes()
    assert load(old)["scheduler"]["_last_lr"] == [1e-3]


def test_a_damaged_file_is_named(tmp_path):
    path = tmp_path / "model-1.ckpt"
    path.write_bytes(b"not a checkpoint")
    with pytest.raises(
        CheckpointError, match=r"cannot be read as a checkpoint .* remove it to resume from the previous one"
    ):
        load(path)
    torch.save({"something": 1}, path)
    with pytest.raises(CheckpointError, match="no state_dict"):
        load(path)


def test_instances_have_their_own_files(tmp_path):
    first, second = (Checkpoints(tmp_path, keep=2, instance=number) for number in range(2))
    for step in (1, 2, 3):
        first.save(step, {"state_dict": {}, "instance": 0})
        second.save(step, {"state_dict": {}, "instance": 1})
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "checkpoint",
        "checkpoint-1",
        "model-2-0.ckpt",
        "model-2-1.ckpt",
        "model-3-0.ckpt",
        "model-3-1.ckpt",
    ]
    assert load(second.latest())["instance"] == 1
    assert find(str(tmp_path)).name == "model-3-0.ckpt"


def test_a_new_instance_uses_files_of_other_instances(tmp_path):
    Checkpoints(tmp_path).save(4, {"state_dict": {}})
    assert Checkpoints(tmp_path, instance=3).latest().name == "model-4.ckpt"
    Checkpoints(tmp_path, instance=0).save(6, {"state_dict": {}})
    assert Checkpoints(tmp_path, instance=3).steps() == [6, 4]
    assert Checkpoints(tmp_path).latest().name == "model-6-0.ckpt"
