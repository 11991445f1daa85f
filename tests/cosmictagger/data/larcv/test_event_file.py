import fcntl
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import h5py
import numpy as np
import pytest

from cosmictagger.data.larcv import layout
from cosmictagger.data.larcv.event_file import EventFile, check_minibatch
from cosmictagger.errors import DataError

DOWNSAMPLES = [0, 1, 2, 3, 7]


def dense_by_hand(path, entry, downsample):
    """The images of one event, read by h5py and summed one pixel at a time."""
    factor = 2**downsample
    image = np.zeros((3, 1280 // factor, 2048 // factor), np.float32)
    label = np.zeros(image.shape, np.uint8)
    with h5py.File(path) as file:
        for producer, stored in ((layout.IMAGE_PRODUCER, image), (layout.LABEL_PRODUCER, label)):
            group = file[layout.sparse_group(producer)]
            for plane, extent in enumerate(group["voxel_extents"][3 * entry : 3 * entry + 3]):
                voxels = group["voxels"][int(extent["first"]) : int(extent["first"]) + int(extent["N"])]
                x, y = np.divmod(voxels["id"].astype(np.int64), 1280)
                if stored is image:
                    np.add.at(stored[plane], (y // factor, x // factor), voxels["value"])
                else:
                    np.maximum.at(stored[plane], (y // factor, x // factor), voxels["value"].astype(np.uint8))
    return image / np.float32(factor**2), label


@pytest.mark.parametrize("downsample", DOWNSAMPLES)
def test_images_match_the_tables(generated, downsample):
    batch = generated.dense_batch([3, 0], downsample)
    for position, entry in enumerate((3, 0)):
        image, label = dense_by_hand(generated.path, entry, downsample)
        assert np.array_equal(batch.image[position], image)
        assert np.array_equal(batch.label[position], label)


@pytest.mark.parametrize("downsample", DOWNSAMPLES)
def test_sparse_and_dense_are_the_same_event(generated, downsample):
    dense = generated.dense_batch([1, 4], downsample)
    filled = generated.batch([1, 4], downsample)
    assert len(np.unique(filled.index)) == len(filled.index)
    scattered = filled.dense()
    image, label = generated.event(4, downsample).dense()
    assert np.array_equal(scattered.image, dense.image)
    assert np.array_equal(scattered.label, dense.label)
    assert np.array_equal(dense.image[1], image)
    assert np.array_equal(dense.label[1], label)
    assert dense.image.dtype == np.float32
    assert dense.label.dtype == np.uint8


def test_a_batch_says_which_events_it_holds(generated):
    batch = generated.batch([2, 0])
    assert batch.entries.tolist() == [2, 0]
    assert batch.event_ids.tolist() == [[1, 0, 2], [1, 0, 0]]
    assert generated.event_id(2) == (1, 0, 2)


def test_several_threads_read_what_one_reads(generated):
    expected = [generated.dense_batch([entry], 2).image for entry in range(len(generated))]
    entries = list(range(len(generated))) * 4
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda entry: generated.dense_batch([entry], 2).image, entries))
    assert all(np.array_equal(image, expected[entry]) for entry, image in zip(entries, found, strict=True))


def test_the_neutrino_is_known(generated):
    truth = generated.truth(0)
    assert truth is not None
    assert abs(truth.pdg) in (12, 14)
    assert truth.energy > 0.2
    assert len(truth.pixels) == 3
    assert generated.particles(0)["pdg"][0] == truth.pdg


def test_channels_can_come_last(generated):
    batch = generated.dense_batch([0, 1], 3)
    last = batch.channels_last()
    assert last.image.shape == (2, 160, 256, 3)
    assert np.array_equal(last.label[1, :, :, 2], batch.label[1, 2])


def test_labels_may_be_on_pixels_without_charge(generated_path, tmp_path):
    path = changed(generated_path, tmp_path, add_a_label_without_charge)
    with EventFile(path) as file, EventFile(generated_path) as before:
        image, label = file.event(0).dense()
        old_image, old_label = before.event(0).dense()
    assert np.array_equal(image, old_image)
    assert np.count_nonzero(label != old_label) == 1


def add_a_label_without_charge(file):
    ids = file[layout.sparse_group(layout.IMAGE_PRODUCER)]["voxels"][:2]["id"]
    labels = file[layout.sparse_group(layout.LABEL_PRODUCER)]["voxels"]
    first = labels[0]
    assert ids[0] > 0
    first["id"], first["value"] = ids[0] - 1, 2
    labels[0] = first


def changed(path, tmp_path, change):
    copy = tmp_path / "changed.h5"
    shutil.copy(path, copy)
    with h5py.File(copy, "r+") as file:
        change(file)
    return copy


def put(table, field, value, row=0, producer=layout.IMAGE_PRODUCER):
    def change(file):
        dataset = file[f"{layout.sparse_group(producer)}/{table}"]
        record = dataset[row]
        record[field] = value
        dataset[row] = record

    return change


def empty(file, group):
    for name in file[group]:
        file[f"{group}/{name}"].resize(0, axis=0)


def put_in_both(table, field, value, row):
    changes = [put(table, field, value, row, producer) for producer in (layout.IMAGE_PRODUCER, layout.LABEL_PRODUCER)]
    return lambda file: [change(file) for change in changes]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda file: empty(file, layout.sparse_group(layout.IMAGE_PRODUCER)), "no events"),
        (lambda file: empty(file, layout.sparse_group(layout.LABEL_PRODUCER)), "no events"),
        (put("extents", "N", 2), "event 0 has 2 planes instead of 3"),
        (put("extents", "first", 10**6), "voxel_extents has 15 rows"),
        (put("voxel_extents", "N", 10**9), "voxels has"),
        (put("voxel_extents", "ID", 1), "not numbered 0, 1 and 2"),
        (put("image_meta", "number_of_voxels", (1024, 1280)), "2 different image sizes"),
        (lambda file: file.__delitem__("Data/sparse2d_sbnd_cosmicseg_group"), "no table Data/sparse2d_sbnd_cosmicseg"),
        (lambda file: file["Events/event_id"].resize(3, axis=0), "event_id has 3 rows, but 5 are needed"),
    ],
)
def test_a_file_whose_tables_disagree_is_refused_when_opened(generated_path, tmp_path, change, message):
    path = changed(generated_path, tmp_path, change)
    with pytest.raises(DataError, match=message) as caught:
        EventFile(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("voxels", "value", float("nan"), row=5), "not finite"),
        (put("voxels", "id", 10**9, row=5), "outside its image of 1280 x 2048"),
        (put_in_both("voxels", "id", 1, row=5), "pixels out of order"),
        (put("voxels", "value", 3.0, row=5, producer=layout.LABEL_PRODUCER), "labels other than 0, 1 and 2"),
        (put("voxels", "value", -1.0, row=5, producer=layout.LABEL_PRODUCER), "labels other than 0, 1 and 2"),
        (put("voxels", "value", 0.5, row=5, producer=layout.LABEL_PRODUCER), "labels other than 0, 1 and 2"),
    ],
)
def test_invalid_values_are_refused_when_an_event_is_read(generated_path, tmp_path, change, message):
    with EventFile(changed(generated_path, tmp_path, change)) as file, pytest.raises(DataError, match=message):
        file.dense_batch([0])


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.9, 0.9999])
def test_a_truncated_file_is_refused(generated_path, tmp_path, share):
    content = generated_path.read_bytes()
    path = tmp_path / "cut.h5"
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(DataError, match=r"cut\.h5 cannot be read as HDF5"):
        EventFile(path)


def test_a_flipped_bit_is_detected_or_harmless(generated_path, tmp_path):
    content = generated_path.read_bytes()
    with EventFile(generated_path) as file:
        expected = file.dense_batch(range(5), 4)
    random = np.random.default_rng(0)
    path = tmp_path / "flipped.h5"
    noticed = 0
    for _ in range(12):
        damaged = bytearray(content)
        damaged[random.integers(len(content))] ^= 1 << int(random.integers(8))
        path.write_bytes(damaged)
        try:
            with EventFile(path) as file:
                batch = file.dense_batch(range(5), 4)
            assert np.array_equal(batch.image, expected.image)
            assert np.array_equal(batch.label, expected.label)
        except DataError:
            noticed += 1
    assert noticed > 6


def test_other_files_are_refused(tmp_path):
    with pytest.raises(DataError, match="No file"):
        EventFile(tmp_path / "missing.h5")
    text = tmp_path / "text.h5"
    text.write_text("not HDF5")
    with pytest.raises(DataError, match="cannot be read as HDF5"):
        EventFile(text)
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["numbers"] = [1, 2, 3]
    with pytest.raises(DataError, match="found numbers"):
        EventFile(tmp_path / "other.h5")


def test_a_file_that_another_program_writes_is_not_called_damaged(generated, tmp_path):
    path = shutil.copy(generated.path, tmp_path / "locked.h5")
    with open(path, "rb") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        with pytest.raises(DataError, match="is being written by another program"):
            EventFile(path)
    EventFile(path).close()


def test_a_file_of_another_user_is_not_called_damaged(generated, monkeypatch):
    def refused(path, mode):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(h5py, "File", refused)
    with pytest.raises(DataError, match="you may not read this file"):
        EventFile(generated.path)


@pytest.mark.parametrize("entry", [-1, 5])
def test_a_missing_event_is_refused(generated, entry):
    with pytest.raises(DataError, match=f"no event {entry}; the file holds events 0 to 4"):
        generated.dense_batch([entry])


def test_a_minibatch_that_the_file_cannot_fill_is_refused():
    check_minibatch("five.h5", 5, 5)
    with pytest.raises(DataError, match=r"run.minibatch_size=6 .* five.h5, which holds 5 events: choose 1 to 5"):
        check_minibatch("five.h5", 5, 6)


def test_importing_the_data_package_imports_nothing_heavy():
    program = (
        "import sys, cosmictagger.data.larcv.predictions, cosmictagger.data.loader, cosmictagger.data.generator.file\n"
        "import cosmictagger.displays.event\n"
        "print([name for name in ('h5py', 'torch', 'matplotlib', 'tqdm') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_the_real_events_have_the_numbers_that_larcv_gives(real_file):
    image, label = real_file.event(0).dense()
    assert [np.count_nonzero(plane) for plane in image] == [23223, 23171, 10084]
    np.testing.assert_allclose(image.sum(axis=(1, 2), dtype=np.float64), [498283.8, 507628.2, 463207.0], atol=0.1)
    assert [np.count_nonzero(plane == 1) for plane in label] == [9890, 9376, 8671]
    assert [np.count_nonzero(plane == 2) for plane in label] == [375, 305, 360]
    assert len(real_file) == 5
    assert real_file.shape == (1280, 2048)


@pytest.mark.parametrize("downsample", [0, 1, 2])
def test_the_real_events_are_read_to_the_last_bit(real_file, downsample):
    batch = real_file.dense_batch(range(5), downsample)
    for entry in range(5):
        image, label = dense_by_hand(real_file.path, entry, downsample)
        assert np.array_equal(batch.image[entry], image)
        assert np.array_equal(batch.label[entry], label)


def test_the_real_neutrinos_are_known(real_file):
    truths = [real_file.truth(entry) for entry in range(5)]
    assert [truth.pdg for truth in truths] == [14, 12, 12, 14, 14]
    assert [truth.current_type for truth in truths] == [0] * 5
    assert [round(truth.energy, 3) for truth in truths] == [1.390, 1.002, 1.890, 1.504, 0.495]
    assert real_file.event_id(0) == (-1, -1, -1)


def test_real_neutrino_pixels_are_near_the_vertex(real_file):
    for entry in range(1, 5):
        truth, (_, label) = real_file.truth(entry), real_file.event(entry).dense()
        for plane, (row, column) in enumerate(truth.pixels):
            assert np.any(label[plane, row - 3 : row + 4, column - 3 : column + 4] == 2)
