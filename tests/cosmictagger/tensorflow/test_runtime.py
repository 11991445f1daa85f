"""Starting TensorFlow in a process that already computes."""

import pytest
import tensorflow as tf

from cosmictagger.configuration.compose import configuration
from cosmictagger.errors import DeviceError
from cosmictagger.tensorflow.runtime import start_runtime


def test_other_threads_in_a_process_that_computes_are_refused():
    tf.constant(1.0)
    words = ["run.id=x", "framework=tensorflow"]
    config = configuration(words)
    assert start_runtime(config.framework, config.run.threads) == ()
    config = configuration([*words, "framework.intra_op_parallelism_threads=3"])
    with pytest.raises(DeviceError, match="already started with other numbers of threads"):
        start_runtime(config.framework, config.run.threads)
