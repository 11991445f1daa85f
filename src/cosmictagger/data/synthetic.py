"""Random images for benchmarks: nothing can be learned from them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cosmictagger.data.detector import HEIGHT, PLANES, WIDTH
from cosmictagger.data.downsampling import check_downsample
from cosmictagger.data.events import Array, Batch, SparseBatch

SYNTHETIC_EVENTS = 1_000_000
MIN_IMAGES = 12


class SyntheticEvents:
    """A few random images that stand for a million entries; each batch starts one image later."""

    def __init__(
        self, minibatch_size: int, *, downsample: int = 0, shape: tuple[int, int] = (HEIGHT, WIDTH), seed: int = 0
    ) -> None:
        check_downsample(downsample, shape)
        self._minibatch_size, self._downsample, self.shape = minibatch_size, downsample, shape
        count = max(MIN_IMAGES, minibatch_size)
        size = (count, PLANES, *(side >> downsample for side in shape))
        random = np.random.default_rng(seed)
        self._image = random.random(size, np.float32)
        self._label = random.integers(0, 3, size, np.uint8)

    def __len__(self) -> int:
        return SYNTHETIC_EVENTS

    def dense_batch(self, entries: Sequence[int] | Array, downsample: int = 0) -> Batch:
        """Copies of the images in the batch's window."""
        self._check(downsample)
        chosen = np.asarray(entries, np.int64)
        window = chosen // self._minibatch_size + chosen % self._minibatch_size
        images = window % len(self._image)
        ids = np.stack([np.zeros_like(chosen), np.zeros_like(chosen), chosen], axis=1)
        return Batch(self._image[images], self._label[images], chosen, ids)

    def batch(self, entries: Sequence[int] | Array, downsample: int = 0) -> SparseBatch:
        """The same images as filled pixels; every pixel is filled."""
        dense = self.dense_batch(entries, downsample)
        index = np.arange(dense.image.size)
        shape = (len(dense.entries), *self._image.shape[1:])
        return SparseBatch(
            shape, index, dense.image.reshape(-1), dense.label.reshape(-1), dense.entries, dense.event_ids
        )

    def _check(self, downsample: int) -> None:
        if downsample != self._downsample:
            raise ValueError(f"The images were generated for downsample {self._downsample}, not {downsample}.")
