"""framework=tensorflow."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cosmictagger.configuration.framework import Tensorflow
from cosmictagger.configuration.root import Configuration
from cosmictagger.devices.torch_device import TorchDevice
from pilotage import World

if TYPE_CHECKING:
    from cosmictagger.devices.executor import Executor
    from cosmictagger.processes.process_group import Processes


class TensorflowDevice(TorchDevice):
    """The processor, as TensorFlow uses it.

    Processes exchange gradients through ``tf.distribute``; everything else, such as the numbers of the log, goes
    through ``torch.distributed``.
    """

    def __init__(self, framework: Tensorflow, *, loads_habana: bool = False) -> None:
        self._framework = framework
        self._loads_habana = loads_habana
        """Whether Habana's bridge is loaded before TensorFlow is used."""

    def environment(self, config: Configuration) -> dict[str, str]:
        """TensorFlow's library reads when it is imported how much to print; unless set, only errors."""
        return {"TF_CPP_MIN_LOG_LEVEL": os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2")}

    def exchange(self, world: World) -> tuple[str, str]:
        """Gloo connects the processes on the host."""
        return "cpu", "gloo"

    def executor(self, config: Configuration, processes: Processes | None = None) -> Executor:
        """Start TensorFlow and build the configured network."""
        from cosmictagger.devices.setup import network_setup
        from cosmictagger.tensorflow.executor import TensorflowExecutor
        from cosmictagger.tensorflow.runtime import start_runtime

        problems = start_runtime(self._framework, config.run.threads, loads_habana=self._loads_habana)
        setup, shared = network_setup(config, processes), config.run.broadcast_buffers
        return TensorflowExecutor(setup, config.network, broadcast_buffers=shared, problems=problems)
