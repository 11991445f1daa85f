from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.datasets.fashion_mnist.content import array_of, content_of
from pilotage.errors import DatasetError


def test_compressed_and_plain_files_have_the_same_content(miniature) -> None:
    for file in miniature.files:
        content = miniature.contents[file.name]
        assert content_of(content, file) == content
        assert content_of(gzip.compress(content), file) == content


def test_any_level_of_compression_is_accepted(miniature) -> None:
    file = miniature.files[0]
    content = miniature.contents[file.name]
    assert {content_of(gzip.compress(content, level), file) for level in range(10)} == {content}


def test_a_file_truncated_anywhere_is_detected(miniature) -> None:
    file = miniature.files[0]
    stored = gzip.compress(miniature.contents[file.name])
    for length in range(len(stored)):
        with pytest.raises(DatasetError, match="cut or corrupt"):
            content_of(stored[:length], file)


@given(place=st.integers(0, 10_000), flip=st.integers(1, 255))
def test_a_changed_byte_is_detected(place: int, flip: int) -> None:
    import hashlib

    from examples.datasets.fashion_mnist.files import DataFile

    content = bytes(range(256)) * 4
    file = DataFile(name="file", shape=(1,), sha256=hashlib.sha256(content).hexdigest())
    damaged = bytearray(content)
    damaged[place % len(content)] ^= flip
    with pytest.raises(DatasetError, match="cut or corrupt"):
        content_of(bytes(damaged), file)


def test_the_array_has_the_values_and_the_shape(miniature) -> None:
    images, labels = (array_of(miniature.contents[file.name], file) for file in miniature.files)
    assert images.shape == (5, 4, 4)
    assert images.tobytes() == miniature.contents["images"][16:]
    assert np.array_equal(labels, np.frombuffer(miniature.contents["labels"][8:], np.uint8))


def test_a_file_of_another_shape_is_refused(miniature) -> None:
    images, labels = miniature.files
    with pytest.raises(DatasetError, match="labels is not an IDX file of shape"):
        array_of(miniature.contents["images"], labels)
    with pytest.raises(DatasetError, match="images is not an IDX file of shape"):
        array_of(miniature.contents["images"][:-1], images)
