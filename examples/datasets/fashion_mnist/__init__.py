"""Fashion-MNIST: 70,000 small photographs of ten kinds of garment.

``load`` returns plain arrays and needs only numpy; ``examples.datasets.fashion_mnist.dataset`` has a dataset for torch.
"""

from examples.datasets.fashion_mnist.arrays import LabelledImages, Splits
from examples.datasets.fashion_mnist.files import CLASSES, SIDE
from examples.datasets.fashion_mnist.generator import generate
from examples.datasets.fashion_mnist.loading import GENERATED, load

__all__ = ["CLASSES", "GENERATED", "SIDE", "LabelledImages", "Splits", "generate", "load"]
