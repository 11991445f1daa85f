"""Files of generated events, each generated once."""

from __future__ import annotations

import fcntl
import multiprocessing
import re
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path

from cosmictagger.data.generator.event import GeneratedEvent, generate_event
from cosmictagger.data.generator.progress import Progress
from cosmictagger.data.larcv import layout
from cosmictagger.data.larcv.writer import EventWriter, pixel_ids
from cosmictagger.errors import DataError

GENERATOR_VERSION = 2
"""Part of the file name: another version generates other events."""
MARKER = "made-by-cosmictagger.txt"
"""A file in every folder that we created."""

_GENERATED = re.compile(r"\.?generated_v\d+_seed\d+_\d+\.(h5|lock|h5\.\d+\.part)")
"""Files of folders that were created before there was a marker."""

_EVENTS_PER_TASK = 8
_GUARD = "Put the script's main code under `if __name__ == '__main__':`, or leave workers at 1."


def generated_file(
    directory: str | Path, *, events: int, seed: int, workers: int = 1, progress: Progress | None = None
) -> Path:
    """Path of the file with these events; generates it if missing, while other processes wait."""
    path = Path(directory) / f"generated_v{GENERATOR_VERSION}_seed{seed}_{events}.h5"
    if not path.is_file():
        # Before the lock: the parent of such a process holds it until its workers are done.
        _check_guard(workers)
        _claim(path.parent)
        with _locked(path):
            if not path.is_file():
                generate_file(path, events=events, seed=seed, workers=workers, progress=progress)
    return path


def _claim(folder: Path) -> None:
    """Create a folder for generated events; raises if it exists and is not ours."""
    try:
        if not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            # With its marker from the start: another process may look at it at any time.
            ours = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
            (ours / MARKER).write_text("CosmicTagger created this folder for the events that it generates.\n")
            ours.chmod(0o755)
            try:
                ours.rename(folder)
            except OSError:
                shutil.rmtree(ours)
        names = {path.name for path in folder.iterdir()}
    except OSError as error:
        raise _unwritable(folder, error) from None
    if MARKER not in names and not (names and all(map(_GENERATED.fullmatch, names))):
        raise DataError(
            f"{folder} exists, and CosmicTagger did not create it: events are generated only into a folder of their "
            "own. Name one that does not exist yet with data.data_directory, or use data=real to read your own files."
        )


def _unwritable(folder: Path, error: OSError) -> DataError:
    return DataError(
        f"{folder} cannot be written to ({error.strerror}), but generated events are stored there. Choose another "
        "data.data_directory."
    )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep other processes of this machine from generating the same file."""
    try:
        # Opened without truncating: another program may keep something in the lock file.
        lock = path.with_suffix(".lock").open("a")
    except OSError as error:
        raise _unwritable(path.parent, error) from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def generate_file(
    path: str | Path, *, events: int, seed: int, workers: int = 1, progress: Progress | None = None
) -> Path:
    """Write the first events of a seed; the file does not depend on the number of workers.

    Several workers are spawned processes, so the calling script needs ``if __name__ == "__main__"``.
    """
    if events < 1 or seed < 0 or workers < 1:
        raise DataError(
            f"events={events}, seed={seed}, workers={workers}: events and workers must be at least 1, seed at least 0."
        )
    _check_guard(workers)
    origin = f"cosmictagger generator version {GENERATOR_VERSION}, seed {seed}"
    with EventWriter(path, origin=origin) as writer:
        for done, event in enumerate(_events(events, seed, workers), start=1):
            _append(writer, event)
            if progress is not None:
                progress(done, events)
    return Path(path)


def _check_guard(workers: int) -> None:
    """Raise in a worker that runs its parent's script again and would start more workers."""
    if workers > 1 and getattr(multiprocessing.current_process(), "_inheriting", False):
        raise DataError(f"Each of the {workers} workers imports the script, which starts workers again. {_GUARD}")


def _events(events: int, seed: int, workers: int) -> Iterator[GeneratedEvent]:
    if workers == 1:
        yield from map(partial(generate_event, seed), range(events))
        return
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        starts = iter(range(0, events, _EVENTS_PER_TASK))
        make = partial(_several, seed, events)
        try:
            pending = [pool.submit(make, start) for start in islice(starts, 2 * workers)]
            while pending:
                yield from pending.pop(0).result()
                pending += [pool.submit(make, start) for start in islice(starts, 1)]
        except BrokenProcessPool:
            raise DataError(
                f"A worker ended before its events were generated; see its own output. If it did not start: {_GUARD}"
            ) from None


def _several(seed: int, events: int, start: int) -> list[GeneratedEvent]:
    return [generate_event(seed, entry) for entry in range(start, min(start + _EVENTS_PER_TASK, events))]


def _append(writer: EventWriter, event: GeneratedEvent) -> None:
    height = event.images.shape[0]
    planes = [
        (
            pixel_ids(plane.row, plane.column, height),
            {layout.IMAGE_PRODUCER: plane.charge, layout.LABEL_PRODUCER: plane.label},
        )
        for plane in event.images.planes
    ]
    writer.append(
        planes,
        event_id=event.images.event_id,
        particles=event.particles,
        vertex_pixels=event.vertex_pixels,
        energy=event.energy,
    )
