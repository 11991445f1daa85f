"""The figures of the tutorial."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image


@pytest.mark.parametrize("size", [(60, 60), (90, 40), (30, 100)])
def test_the_titles_before_and_after_are_at_the_same_height(
    tutorial_module, tmp_path: Path, monkeypatch, size: tuple[int, int]
) -> None:
    predict, pictures = tutorial_module("predict"), tutorial_module("pictures")
    Image.new("L", size, 255).save(tmp_path / "given.png")
    prediction = predict.Prediction(predict.prepared(tmp_path / "given.png"), (0.05,) * 9 + (0.55,))
    saved = []
    monkeypatch.setattr(pictures, "_save", lambda figure, path: saved.append(figure))
    pictures.save_before_after([prediction, prediction], tmp_path / "figure.png")
    (figure,) = saved
    figure.draw_without_rendering()
    for row in (figure.axes[:3], figure.axes[3:]):
        heights = [axes.title.get_window_extent().y0 for axes in row]
        assert max(heights) - min(heights) < 2
