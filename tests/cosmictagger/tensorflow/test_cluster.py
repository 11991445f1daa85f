"""Addresses of the processes, and the mean of their gradients."""

import json
import os
import socket
import subprocess
import sys

import tensorflow as tf

from cosmictagger.processes.process_group import Processes
from cosmictagger.tensorflow.cluster import Cluster, own_address

PROGRAM = """
import json
import pilotage
import tensorflow as tf
from cosmictagger.processes.joining import connect
from cosmictagger.processes.process_group import Processes
from cosmictagger.tensorflow.cluster import Cluster

world = pilotage.world_here()
connect(world, "gloo")
processes = Processes(world=world, backend="gloo")
cluster = Cluster(processes)
for step in range(3):
    own = [tf.constant([1.0, 2.0 + step]) * (1 + 2 * world.rank), tf.fill((2, 2, 1, 1), float(world.rank))]
    found = [each.numpy().ravel().tolist() for each in cluster.mean(own)]
    gathered = processes.gather(json.dumps(found))
    if world.rank == 0:
        print("found", json.dumps([json.loads(each) for each in gathered]), flush=True)
processes.leave()
"""


def test_two_processes_get_the_mean_of_their_gradients(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = str(listening.getsockname()[1])
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", port]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    ran = subprocess.run([*launcher, tmp_path / "program.py"], capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    lines = [line.partition("found ")[2] for line in ran.stdout.splitlines() if "found " in line]
    wanted = [[[2.0, 2.0 * (2 + step)], [0.5] * 4] for step in range(3)]
    assert [json.loads(line) for line in lines] == [[each, each] for each in wanted]


def test_an_address_is_on_the_way_to_the_meeting_point_and_free():
    for meeting_point in (None, "127.0.0.1", "localhost"):
        host, port = own_address(meeting_point).rsplit(":", 1)
        assert host == "127.0.0.1"
        with socket.socket() as listening:
            listening.bind((host, int(port)))


def test_one_process_keeps_its_gradients():
    gradients = [tf.constant([1.0, 2.0])]
    assert Cluster(Processes()).mean(gradients) is gradients
