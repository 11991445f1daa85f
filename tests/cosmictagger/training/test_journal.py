"""Only one of several processes writes."""

from cosmictagger.records.process_log import LOGGER, process_log
from cosmictagger.training.journal import SHOWN, Journal


def test_a_process_that_does_not_write_creates_no_files(tmp_path, capsys):
    with process_log(tmp_path, writes=False):
        journal = Journal(tmp_path, images_per_step=2, writes=False)
        journal.note("train", 0, dict.fromkeys(SHOWN, 1.0))
        journal.draw("train", 0, None, None)
        LOGGER.info("nobody hears this")
        journal.close()
    assert not list(tmp_path.iterdir())
    assert not capsys.readouterr().out


def test_the_writing_process_creates_tables_and_a_log(tmp_path, capsys):
    with process_log(tmp_path):
        journal = Journal(tmp_path, images_per_step=2, saver=False)
        journal.note("train", 0, dict.fromkeys(SHOWN, 1.0))
        journal.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["process.log", "train_metrics.csv"]
    assert "train Step 0 metrics" in capsys.readouterr().out
