from cosmictagger.data.generator.file import generated_file
from cosmictagger.data.larcv.event_file import EventFile
from cosmictagger.data.loader import Loader
from cosmictagger.modes.iotest import measure_reading


def test_reading_is_measured_and_logged_like_the_original(few_events):
    lines = []
    file = EventFile(generated_file(few_events, events=4, seed=2))
    with file, Loader(file, minibatch_size=2, downsample=3) as loader:
        report = measure_reading(loader, 4, log=lines.append)
    assert report.images == 8
    assert report.seconds > 0
    assert report.images_per_second == 8 / report.seconds
    assert 0 < report.first_batch_seconds < report.seconds
    assert [line.split(":")[0] for line in lines] == [
        "0",
        "1",
        "2",
        "3",
        "Total IO Time",
        "Total images read per batch",
        "Average Image IO Throughput",
    ]
    assert lines[2].startswith("2: Time to fetch a minibatch of data: ")
