from __future__ import annotations

import pytest

import popdist.tensorflow


def test_configuring_tensorflow_is_refused():
    with pytest.raises(RuntimeError, match=r"Graphcore's TensorFlow.*popdist\.poptorch\.Options") as raised:
        popdist.tensorflow.set_ipu_config(object(), ipus_per_replica=1)
    assert "\n" not in str(raised.value)
