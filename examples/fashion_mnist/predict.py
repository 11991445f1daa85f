"""Pictures of one's own, brought into the form that the network knows."""

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
"""A corner brighter than this means a light ground."""


@dataclass(frozen=True)
class Prepared:
    """A picture before and after."""

    path: Path
    original: Image.Image
    grey: Image.Image

    @property
    def tensor(self) -> Tensor:
        """As the network wants it, of shape (1, 28, 28)."""
        return normalised(torch.tensor(np.asarray(self.grey)))


@dataclass(frozen=True)
class Prediction:
    """What the network makes of a picture."""

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
    """Read, shrink to 28 x 28, turn grey, and invert where the ground is light."""
    original = opened(path)
    grey = ImageOps.grayscale(original.resize((SIDE, SIDE)))
    # The pictures that the network has seen are light garments on black; a catalogue shows the opposite.
    if grey.getpixel((1, 1)) > LIGHT_GROUND:
        grey = ImageOps.invert(grey)
    return Prepared(path, original, grey)


def opened(path: Path) -> Image.Image:
    """The picture upright, in colour, and on white where it is transparent."""
    try:
        with Image.open(path) as image:
            upright = ImageOps.exif_transpose(image).convert("RGBA")
    except FileNotFoundError:
        raise DatasetError(f"There is no picture {path}.") from None
    except UnidentifiedImageError:
        raise DatasetError(f"{path} is not a picture that can be read. Give a PNG, a JPEG or the like.") from None
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise DatasetError(f"{path} cannot be read: {error}.") from None
    return Image.alpha_composite(Image.new("RGBA", upright.size, "white"), upright).convert("RGB")


def predictions(pictures: list[Prepared], scores: Tensor) -> list[Prediction]:
    """Pair each picture with the probabilities behind its scores."""
    return [Prediction(picture, tuple(row.exp().tolist())) for picture, row in zip(pictures, scores, strict=True)]
