"""The curve of a training, as a picture and as a line of text."""

import numpy as np
import pytest

from cosmictagger.displays.curve import column, draw_training, smoothed, sparkline


def test_means_over_a_window_are_shorter_at_the_ends():
    assert smoothed([0, 3, 6, 9], 3).tolist() == pytest.approx([1.5, 3, 6, 7.5])
    assert smoothed([], 3).tolist() == []


def test_a_line_of_bars_shows_the_values():
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
    assert sparkline(np.linspace(1, 0, 500), width=4) == "█▆▃▁"
    assert sparkline([2, 2]) == "▁▁"
    assert sparkline([]) == ""


def test_rows_without_a_value_are_left_out(tmp_path):
    (tmp_path / "a.csv").write_text("step,loss,extra\n0,4.0,\n1,2.0,1.0\n")
    assert column(tmp_path / "a.csv", "loss").values.tolist() == [4, 2]
    assert column(tmp_path / "a.csv", "extra").steps.tolist() == [1]
    assert len(column(tmp_path / "none.csv", "loss").steps) == 0


@pytest.mark.slow
def test_a_training_is_drawn_from_its_tables(tmp_path):
    assert draw_training(tmp_path / "training.png", tmp_path) is None
    header = "step,loss,Average/Cosmic_IoU,Average/Neutrino_IoU\n"
    for kind, steps in (("train", range(20)), ("test", (10, 15))):
        rows = "".join(f"{step},{5 / (step + 1)},{step / 20},{step / 40}\n" for step in steps)
        (tmp_path / f"{kind}_metrics.csv").write_text(header + rows)
    path = draw_training(tmp_path / "training.png", tmp_path, title="run")
    assert path.stat().st_size > 10_000
