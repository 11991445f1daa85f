"""The parts of torchvision that the tutorials use, for machines without it.

STANDIN_IMAGES says how many pictures each split has; they are the drawn ones, so that nothing is downloaded.
"""

from torchvision import datasets, transforms

__all__ = ["datasets", "transforms"]
