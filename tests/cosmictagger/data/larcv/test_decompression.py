import contextlib
import sys
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosmictagger.data.larcv.decompression import ChunkError, fastest_inflate, python_inflate

INFLATES = [python_inflate, fastest_inflate()]


@pytest.mark.parametrize("inflate", INFLATES)
@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=5000), st.integers(0, 9))
def test_compressed_data_is_restored(inflate, data, level):
    assert inflate(zlib.compress(data, level), len(data)) == data


@pytest.mark.parametrize("inflate", INFLATES)
@settings(max_examples=40, deadline=None)
@given(st.binary(min_size=20, max_size=2000), st.data())
def test_a_changed_or_missing_byte_is_detected(inflate, data, draw):
    compressed = bytearray(zlib.compress(data))
    with pytest.raises(ChunkError):
        inflate(bytes(compressed[: draw.draw(st.integers(0, len(compressed) - 1))]), len(data))
    compressed[draw.draw(st.integers(2, len(compressed) - 1))] ^= 1 << draw.draw(st.integers(0, 7))
    with contextlib.suppress(ChunkError):
        assert inflate(bytes(compressed), len(data)) == data


def test_without_the_package_python_decompresses(monkeypatch):
    monkeypatch.setitem(sys.modules, "isal", None)
    assert fastest_inflate() is python_inflate
