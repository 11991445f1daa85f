"""Tables of resumed runs."""

from cosmictagger.records.tables import MetricTable
from cosmictagger.training.metrics import KEYS


def written(path, steps, *, resumed_at=0):
    table = MetricTable(path, resumed_at=resumed_at)
    for step in steps:
        table.write(step, {"loss": step / 4, "Average/mIoU": 1.0})
    table.close()
    return path.read_text()


def test_a_table_has_a_header_and_five_decimals(tmp_path):
    assert written(tmp_path / "a.csv", [0, 1]) == "step,loss,Average/mIoU\n0,0.00000,1.00000\n1,0.25000,1.00000\n"


def test_a_small_rate_keeps_its_digits(tmp_path):
    table = MetricTable(tmp_path / "a.csv")
    table.write(0, {"loss": 1.0, "learning_rate": 1.234567e-6})
    table.close()
    assert (tmp_path / "a.csv").read_text() == "step,loss,learning_rate\n0,1.00000,1.23457e-06\n"


def test_a_resumed_run_has_no_repeated_or_truncated_lines(tmp_path):
    whole = written(tmp_path / "whole.csv", range(6))
    written(tmp_path / "part.csv", range(5))
    with (tmp_path / "part.csv").open("a") as file:
        file.write("5,0.1")
    assert written(tmp_path / "part.csv", range(3, 6), resumed_at=3) == whole


def test_a_new_run_starts_a_new_table(tmp_path):
    written(tmp_path / "a.csv", range(9))
    assert written(tmp_path / "a.csv", [0]) == "step,loss,Average/mIoU\n0,0.00000,1.00000\n"


def test_rows_of_the_original_are_kept_with_their_columns(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("step,loss,io_fetch_time\n0,4.00000,0.10000\n1,3.00000,0.20000\n2,2.00000,0.30000\n")
    assert written(path, [2], resumed_at=2) == (
        "step,loss,Average/mIoU,io_fetch_time\n0,4.00000,,0.10000\n1,3.00000,,0.20000\n2,0.50000,1.00000,\n"
    )


def test_columns_have_the_originals_order_and_new_ones_follow(tmp_path):
    times = dict.fromkeys(
        ("learning_rate", "global_step_per_sec", "images_per_second", "io_fetch_time", "step_time"), 2.0
    )
    table = MetricTable(tmp_path / "a.csv")
    table.write(0, dict.fromkeys(KEYS, 1.0) | {"loss": 4.0} | times)
    table.close()
    header = (tmp_path / "a.csv").read_text().split("\n")[0].split(",")
    assert len(header) == 1 + 25 + 1
    assert header[:7] == [
        "step",
        "loss",
        *(f"Average/{name}" for name in ("Total_Accuracy", "Cosmic_IoU", "Neutrino_IoU", "Non_Bkg_Accuracy", "mIoU")),
    ]
    assert header[-5:] == ["global_step_per_sec", "images_per_second", "io_fetch_time", "step_time", "learning_rate"]
