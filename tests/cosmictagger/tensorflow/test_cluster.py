"""Addresses of the processes, and gradients of one process."""

import socket

import tensorflow as tf

from cosmictagger.processes.process_group import Processes
from cosmictagger.tensorflow.cluster import Cluster, own_address


def test_an_address_is_on_the_way_to_the_meeting_point_and_free():
    for meeting_point in (None, "127.0.0.1", "localhost"):
        host, port = own_address(meeting_point).rsplit(":", 1)
        assert host == "127.0.0.1"
        with socket.socket() as listening:
            listening.bind((host, int(port)))


def test_one_process_keeps_its_gradients():
    gradients = [tf.constant([1.0, 2.0])]
    assert Cluster(Processes()).mean(gradients) is gradients
