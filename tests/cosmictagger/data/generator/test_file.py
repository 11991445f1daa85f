import subprocess
import sys
import threading

import h5py
import numpy as np
import pytest

from cosmictagger.data.generator.event import generate_event
from cosmictagger.data.generator.file import GENERATOR_VERSION, generate_file, generated_file
from cosmictagger.data.larcv.event_file import EventFile
from cosmictagger.errors import DataError


def test_a_file_holds_its_events_in_order_and_reports_progress(tmp_path):
    seen = []
    path = generate_file(tmp_path / "two.h5", events=2, seed=6, progress=lambda done, total: seen.append((done, total)))
    with EventFile(path) as file:
        for entry in range(2):
            image, label = file.event(entry).dense()
            expected = generate_event(6, entry)
            expected_image, expected_label = expected.images.dense()
            assert np.array_equal(image, expected_image)
            assert np.array_equal(label, expected_label)
            assert file.truth(entry).pixels == expected.vertex_pixels
    assert seen == [(1, 2), (2, 2)]


@pytest.mark.slow
def test_the_number_of_workers_does_not_change_the_file(tmp_path):
    one = generate_file(tmp_path / "one.h5", events=10, seed=2)
    two = generate_file(tmp_path / "two.h5", events=10, seed=2, workers=2)
    with h5py.File(one) as first, h5py.File(two) as second:
        names = []
        first.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
        assert len(names) == 21
        assert all(np.array_equal(first[name][:], second[name][:]) for name in names)


UNGUARDED = """
import sys
from cosmictagger.errors import DataError
from cosmictagger.data.generator import file
try:
    getattr(file, sys.argv[1])(sys.argv[2], events=10, seed=2, workers=2)
except DataError as error:
    print(f"{type(error).__name__}: {error}", flush=True)
    raise SystemExit(3)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("function", "place"), [("generated_file", "new"), ("generate_file", "events.h5")])
def test_a_script_without_a_main_guard_is_refused(tmp_path, function, place):
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED)
    command = [sys.executable, str(script), function, str(tmp_path / place)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 3, ran.stderr
    assert "DataError: Each of the 2 workers imports the script" in ran.stdout
    assert "DataError: A worker ended before its events were generated" in ran.stdout
    assert "if __name__ == '__main__':" in ran.stdout
    assert not list(tmp_path.rglob("*.h5"))


def test_a_file_is_generated_once(tmp_path):
    path = generated_file(tmp_path / "new", events=1, seed=3)
    made = path.stat().st_mtime_ns
    assert path.name == f"generated_v{GENERATOR_VERSION}_seed3_1.h5"
    assert generated_file(tmp_path / "new", events=1, seed=3) == path
    assert path.stat().st_mtime_ns == made


def test_events_are_generated_only_into_folders_of_their_own(tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    with pytest.raises(DataError, match=r"CosmicTagger did not create it.*use data=real"):
        generated_file(mine, events=1, seed=3)
    (mine / "events.h5").touch()
    with pytest.raises(DataError, match="CosmicTagger did not create it"):
        generated_file(mine, events=1, seed=3)
    assert [path.name for path in mine.iterdir()] == ["events.h5"]
    ours = generated_file(tmp_path / "new", events=1, seed=3).parent
    (ours / "notes.txt").touch()
    assert generated_file(ours, events=1, seed=4).is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "new"]


def test_a_lock_file_keeps_its_content(tmp_path):
    lock = tmp_path / f"generated_v{GENERATOR_VERSION}_seed3_1.lock"
    lock.write_text("host 7")
    generated_file(tmp_path, events=1, seed=3)
    assert lock.read_text() == "host 7"


@pytest.mark.parametrize("wrong", [{"events": 0}, {"seed": -1}, {"workers": 0}])
def test_invalid_arguments_are_refused(tmp_path, wrong):
    with pytest.raises(DataError, match="must be at least 1"):
        generate_file(tmp_path / "none.h5", **({"events": 1, "seed": 1} | wrong))
    assert not list(tmp_path.iterdir())


def test_only_one_of_several_processes_generates_the_file(tmp_path):
    """Both start at the same time; the second waits and finds the file."""
    made = []

    def ask():
        generated_file(tmp_path / "new", events=1, seed=9, progress=lambda done, events: made.append(done))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1]
    with EventFile(generated_file(tmp_path / "new", events=1, seed=9)) as file:
        assert len(file) == 1


def test_an_unwritable_folder_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"cannot be written to \(File exists\).*data\.data_directory"):
        generated_file(tmp_path / "file" / "events", events=1, seed=1)
