"""Prepares your own pictures for the network."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps, UnidentifiedImageError
from torch import Tensor

from examples.datasets.fashion_mnist import CLASSES, SIDE
from examples.datasets.fashion_mnist.dataset import normalised
from pilotage.errors import DatasetError

LIGHT_GROUND = 200
"""A corner brighter than this means a light background."""


@dataclass(frozen=True)
class Prepared:
    """A picture before and after preparation."""

    path: Path
    original: Image.Image
    grey: Image.Image

    @property
    def tensor(self) -> Tensor:
        """The input of the network, of shape (1, 28, 28)."""
        return normalised(torch.tensor(np.asarray(self.grey)))


@dataclass(frozen=True)
class Prediction:
    """The prediction for a picture."""

    picture: Prepared
    probabilities: tuple[float, ...]

    @property
    def name(self) -> str:
        return CLASSES[int(np.argmax(self.probabilities))]

    @property
    def ranking(self) -> list[tuple[str, float]]:
        """Classes and probabilities, the most probable first."""
        return sorted(zip(CLASSES, self.probabilities, strict=True), key=lambda pair: -pair[1])


def prepared(path: Path) -> Prepared:
    """Read a picture, shrink it to 28 x 28, convert it to grey, and invert it if its background is light."""
    original = opened(path)
    grey = ImageOps.grayscale(original.resize((SIDE, SIDE)))
    # The network was trained on light garments on black; catalogues usually show the opposite.
    if grey.getpixel((1, 1)) > LIGHT_GROUND:
        grey = ImageOps.invert(grey)
    return Prepared(path, original, grey)


def opened(path: Path) -> Image.Image:
    """The picture upright, in colour, with white for transparent parts."""
    try:
        with Image.open(path) as image:
            upright = ImageOps.exif_transpose(image).convert("RGBA")
    except FileNotFoundError:
        raise DatasetError(f"The picture {path} does not exist.") from None
    except UnidentifiedImageError:
        raise DatasetError(f"{path} is not a picture in a known format. Use a PNG or a JPEG, for example.") from None
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise DatasetError(f"{path} cannot be read: {error}.") from None
    return Image.alpha_composite(Image.new("RGBA", upright.size, "white"), upright).convert("RGB")


def predictions(pictures: list[Prepared], scores: Tensor) -> list[Prediction]:
    """Pair each picture with its probabilities."""
    return [Prediction(picture, tuple(row.exp().tolist())) for picture, row in zip(pictures, scores, strict=True)]
