"""The processes of a run as a cluster of TensorFlow."""

from __future__ import annotations

import socket
from typing import Any

import tensorflow as tf
from tensorflow import Tensor

from cosmictagger.processes.process_group import Processes

EXCHANGE = "tf.distribute.MultiWorkerMirroredStrategy"


class Cluster:
    """Averages gradients over all processes with ``tf.distribute``; with one process it returns them as they are."""

    def __init__(self, processes: Processes) -> None:
        self._strategy: Any = _strategy(processes) if processes.is_distributed else None
        self._average = tf.function(self._averaged, autograph=False)

    def mean(self, gradients: list[Tensor]) -> list[Tensor]:
        """The mean of each gradient over the processes; every process must call this."""
        found: list[Tensor] = gradients if self._strategy is None else self._average(gradients)
        return found

    def _averaged(self, gradients: list[Tensor]) -> list[Tensor]:
        averaged: list[Tensor] = self._strategy.run(_all_reduce, args=(gradients,))
        return averaged


def _all_reduce(gradients: list[Tensor]) -> Any:
    with tf.device("CPU:0"):
        # The arguments of a graph lie on no device, and the strategy asks where its results should go.
        placed = [tf.identity(gradient) for gradient in gradients]
    return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.MEAN, placed)


def _strategy(processes: Processes) -> Any:
    """A strategy whose workers are the processes; must be created before TensorFlow computes anything."""
    workers = processes.gather(own_address(processes.world.address))
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec({"worker": workers}), task_type="worker", task_id=processes.rank, rpc_layer="grpc"
    )
    return tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver)


def own_address(meeting_point: str | None) -> str:
    """An address of this host that the process at the meeting point can reach, and a free port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        # Connecting a datagram socket sends nothing; it only chooses the way there.
        probe.connect((meeting_point or "127.0.0.1", 9))
        host = probe.getsockname()[0]
    with socket.socket() as listening:
        listening.bind((host, 0))
        return f"{host}:{listening.getsockname()[1]}"
