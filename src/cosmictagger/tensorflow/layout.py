"""Tensors in torch's layout and in TensorFlow's.

Names are torch's in both. A kernel is (outputs, inputs, height, width) in torch and (height, width, inputs, outputs) in
TensorFlow. The kernel of a transposed convolution has inputs and outputs swapped in both, so one rule serves all.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from cosmictagger.data.events import Array

TO_TENSORFLOW = (2, 3, 1, 0)
TO_TORCH = (3, 2, 0, 1)


def to_tensorflow(values: Tensor) -> Array:
    """A copy of a weight, a statistic or an optimizer's slot in TensorFlow's layout."""
    array: Array = values.detach().cpu().numpy()
    return np.array(array.transpose(TO_TENSORFLOW) if array.ndim == len(TO_TENSORFLOW) else array, order="C")


def to_torch(values: Array) -> Tensor:
    """A copy in torch's layout."""
    array = values.transpose(TO_TORCH) if values.ndim == len(TO_TORCH) else values
    return torch.from_numpy(np.array(array, order="C"))
