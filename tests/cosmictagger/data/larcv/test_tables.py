import time
from concurrent.futures import ThreadPoolExecutor

import h5py
import numpy as np
import pytest
from h5py._objects import phil
from hypothesis import given, settings
from hypothesis import strategies as st

from cosmictagger.data.larcv import layout
from cosmictagger.data.larcv.tables import Table
from cosmictagger.errors import DataError

ROWS = 2500
WAYS = {
    "gzip": {"chunks": (100,), "compression": "gzip"},
    "as larcv": {"chunks": (1000,), "compression": "gzip", "compression_opts": 1, "maxshape": (None,)},
    "shuffled": {"chunks": (100,), "compression": "gzip", "shuffle": True},
    "checked": {"chunks": (300,), "compression": "gzip", "fletcher32": True},
    "plain chunks": {"chunks": (100,)},
    "in one piece": {},
}


def voxels(kind=layout.VOXEL):
    rows = np.zeros(ROWS, kind)
    rows["id"] = np.arange(ROWS) * 3
    rows["value"] = np.random.default_rng(0).uniform(5, 100, ROWS)
    return rows


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "ways.h5"
    with h5py.File(path, "w") as file:
        for name, way in WAYS.items():
            file.create_dataset(name, data=voxels(), **way)
        file.create_dataset("packed", data=voxels(np.dtype([("id", "<u8"), ("value", "<f4")])), chunks=(100,))
    with h5py.File(path) as file:
        yield {name: Table(path, file[name], layout.VOXEL) for name in file}


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([*WAYS, "packed"]), st.integers(0, ROWS), st.integers(0, ROWS))
def test_rows_are_the_same_however_they_are_stored(tables, way, start, length):
    stop = min(start + length, ROWS)
    rows, expected = tables[way].rows(start, stop), voxels()[start:stop]
    assert rows.dtype == layout.VOXEL
    assert np.array_equal(rows["id"], expected["id"])
    assert np.array_equal(rows["value"], expected["value"])


def test_a_chunk_is_fetched_under_the_lock_of_h5py(tables):
    """Not every release of h5py takes it by itself, and HDF5 is not made for several threads."""
    table, held = tables["gzip"], []
    dataset = table._dataset

    class Watched:
        shape, name = dataset.shape, dataset.name

        class id:  # noqa: N801
            @staticmethod
            def read_direct_chunk(place):
                held.append(phil._is_owned())
                return dataset.id.read_direct_chunk(place)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "_dataset", Watched)
        table.rows(0, 250)
    assert held == [True, True, True]
    assert not phil._is_owned()


@pytest.mark.slow
def test_threads_read_the_same_rows_as_one(tables):
    """Where a release of h5py does not lock, threads without a lock crash within a second."""
    table, expected, end = tables["gzip"], voxels(), time.monotonic() + 1.5

    def read(number):
        while time.monotonic() < end:
            start = number = (number * 7 + 1) % (ROWS - 300)
            assert np.array_equal(table.rows(start, start + 300), expected[start : start + 300])
        return True

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(read, range(4)))


def test_rows_beyond_the_end_are_refused(tables):
    with pytest.raises(DataError, match=f"has {ROWS} rows, but {ROWS + 1} are needed"):
        tables["gzip"].rows(0, ROWS + 1)


def test_a_damaged_chunk_is_named(tmp_path):
    path = tmp_path / "damaged.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("voxels", data=voxels(), **WAYS["gzip"])
        place = file["voxels"].id.get_chunk_info(7).byte_offset
    content = bytearray(path.read_bytes())
    content[place + 40] ^= 0xFF
    path.write_bytes(content)
    with h5py.File(path) as file:
        table = Table(path, file["voxels"], layout.VOXEL)
        assert len(table.rows(0, 700)) == 700
        with pytest.raises(DataError, match=r"damaged\.h5: rows 650 to 720 of /voxels cannot be read"):
            table.rows(650, 720)
