"""As much of torchvision as the seed documents use, for machines on which it cannot be imported.

STANDIN_IMAGES says how many pictures each split has; they are the drawn ones, so that nothing is downloaded.
"""

from torchvision import datasets, transforms

__all__ = ["datasets", "transforms"]
