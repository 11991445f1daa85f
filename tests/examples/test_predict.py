"""Preparing and classifying the user's own pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from pilotage.errors import DatasetError


@pytest.fixture
def predict(tutorial_module):
    return tutorial_module("predict")


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "P", "1", "CMYK", "LA"])
def test_a_light_background_becomes_dark_and_a_dark_one_stays(predict, tmp_path: Path, mode: str) -> None:
    for ground, garment in ((255, 0), (0, 255)):
        image = Image.new("L", (100, 80), ground)
        image.paste(garment, (30, 20, 70, 60))
        path = tmp_path / "picture.tiff"
        image.convert(mode).save(path)
        grey = np.asarray(predict.prepared(path).grey)
        assert grey.shape == (28, 28)
        assert grey[0, 0] < 5
        assert grey[14, 14] > 250


def test_a_transparent_background_counts_as_light(predict, tmp_path: Path) -> None:
    image = Image.new("RGBA", (56, 56), (0, 0, 0, 0))
    image.paste((10, 10, 10, 255), (14, 14, 42, 42))
    image.save(tmp_path / "cut-out.png")
    grey = np.asarray(predict.prepared(tmp_path / "cut-out.png").grey)
    assert grey[0, 0] == 0
    assert grey[14, 14] == 245


def test_the_corner_decides_at_two_hundred(predict, tmp_path: Path) -> None:
    for level, expected in ((200, 200), (201, 54)):
        Image.new("L", (28, 28), level).save(tmp_path / "even.png")
        assert np.unique(np.asarray(predict.prepared(tmp_path / "even.png").grey)).tolist() == [expected]


def test_a_picture_of_the_test_set_passes_through_unchanged(predict, tmp_path: Path) -> None:
    from examples.datasets.fashion_mnist import generate
    from examples.datasets.fashion_mnist.dataset import FashionMNIST

    test = generate(train=0, test=10).test
    dataset = FashionMNIST(test)
    for index, image in enumerate(test.images):
        Image.fromarray(image).save(tmp_path / "same.png")
        assert torch.equal(predict.prepared(tmp_path / "same.png").tensor, dataset.images[index])


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (None, r"The picture .* does not exist"),
        (b"", "is not a picture"),
        (b"words", "is not a picture"),
        ("cut", "cannot be read"),
    ],
)
def test_an_unreadable_picture_is_named_in_one_line(predict, tmp_path: Path, content, part: str) -> None:
    path = tmp_path / "wrong.png"
    if content == "cut":
        Image.effect_noise((64, 64), 50).save(path)
        content = path.read_bytes()[:-900]
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DatasetError, match=part) as caught:
        predict.prepared(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_directory_is_not_a_picture(predict, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="cannot be read"):
        predict.prepared(tmp_path)


def test_probabilities_come_from_the_scores(predict, tmp_path: Path) -> None:
    Image.new("L", (28, 28)).save(tmp_path / "dark.png")
    scores = torch.log_softmax(torch.arange(10.0).roll(3), dim=0)[None]
    (prediction,) = predict.predictions([predict.prepared(tmp_path / "dark.png")], scores)
    assert prediction.name == "Pullover"
    assert sum(prediction.probabilities) == pytest.approx(1)
    assert [probability for _, probability in prediction.ranking] == sorted(prediction.probabilities, reverse=True)
    assert prediction.ranking[0][0] == "Pullover"


def test_the_shipped_picture_is_drawn_by_its_script(tmp_path: Path, run) -> None:
    images = Path(__file__).parents[2] / "examples" / "fashion_mnist" / "images"
    script = tmp_path / "draw_trousers.py"
    script.write_text((images / script.name).read_text())
    assert run(script).returncode == 0
    drawn, shipped = (np.asarray(Image.open(place / "trousers.png"), int) for place in (tmp_path, images))
    # Other releases of Pillow may round a pixel differently.
    assert np.abs(drawn - shipped).mean() < 0.5
