import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosmictagger.data.larcv import layout
from cosmictagger.data.larcv.event_file import EventFile
from cosmictagger.data.larcv.writer import EventWriter, pixel_ids
from cosmictagger.errors import DataError

SHAPE = (16, 32)


@st.composite
def planes(draw):
    ids = draw(st.lists(st.integers(0, SHAPE[0] * SHAPE[1] - 1), unique=True, max_size=20).map(sorted))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    return np.array(ids, np.uint64), {
        layout.IMAGE_PRODUCER: random.uniform(5, 3000, len(ids)).astype(np.float32),
        layout.LABEL_PRODUCER: random.integers(0, 3, len(ids), np.uint8),
    }


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(planes(), planes(), planes()), min_size=1, max_size=4))
def test_written_events_are_read_back(tmp_path_factory, events):
    path = tmp_path_factory.mktemp("written") / "events.h5"
    with EventWriter(path, shape=SHAPE) as writer:
        for number, event in enumerate(events):
            writer.append(event, event_id=(1, 2, number))
    with EventFile(path) as file:
        assert len(file) == len(events)
        assert file.shape == SHAPE
        for number, event in enumerate(events):
            read = file.event(number)
            assert read.event_id == (1, 2, number)
            for plane, (ids, values) in zip(read.planes, event, strict=True):
                assert np.array_equal(pixel_ids(plane.row, plane.column, SHAPE[0]), ids)
                assert np.array_equal(plane.charge, values[layout.IMAGE_PRODUCER])
                assert np.array_equal(plane.label, values[layout.LABEL_PRODUCER])


def one_event():
    return [(np.array([3], np.uint64), {layout.IMAGE_PRODUCER: [7.0], layout.LABEL_PRODUCER: [1]})] * 3


def test_particles_and_vertex_are_read_back(tmp_path):
    particles = np.zeros(2, layout.PARTICLE)
    particles["pdg"], particles["energy_init"] = (12, 11), (1.5, 1.2)
    with EventWriter(tmp_path / "events.h5", shape=SHAPE) as writer:
        writer.append(one_event(), particles=particles, vertex_pixels=((3, 4), (5, 6), (7, 8)))
        writer.append(one_event(), particles=particles[:1], vertex_pixels=((0, 0), (15, 31), (9, 9)))
    with EventFile(tmp_path / "events.h5") as file:
        assert file.truth(0).pixels == ((3, 4), (5, 6), (7, 8))
        assert file.truth(0).energy == 1.5
        assert len(file.particles(0)) == 2
        assert file.truth(1).pixels == ((1, 1), (14, 30), (9, 9)), "a block at the edge is moved inwards"


def test_a_file_without_particles_has_no_truth(tmp_path):
    with EventWriter(tmp_path / "events.h5", shape=SHAPE) as writer:
        writer.append(one_event())
    with EventFile(tmp_path / "events.h5") as file:
        assert file.truth(0) is None


def test_an_unfinished_file_does_not_appear(tmp_path):
    def write_half():
        with EventWriter(tmp_path / "events.h5", shape=SHAPE) as writer:
            writer.append(one_event())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert not list(tmp_path.iterdir())


def test_an_old_file_stays_until_the_new_one_is_complete(tmp_path):
    path = tmp_path / "events.h5"
    path.write_text("old")
    with EventWriter(path, shape=SHAPE) as writer:
        writer.append(one_event())
        assert path.read_text() == "old"
    with EventFile(path) as file:
        assert len(file) == 1


def test_an_unwritable_path_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        EventWriter(tmp_path / "file" / "events.h5")
