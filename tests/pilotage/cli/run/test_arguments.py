from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError

import pytest

from pilotage.cli.run.arguments import add_arguments, switch


def parsed(*words: str):
    parser = ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(words)


def test_switches_accept_several_spellings():
    assert all(switch(word) for word in ("1", "yes", "True", "on"))
    assert not any(switch(word) for word in ("0", "no", "False", "off"))
    with pytest.raises(ArgumentTypeError, match="'maybe' is neither"):
        switch("maybe")


def test_arguments_after_the_program_belong_to_it():
    options = parsed("-vv", "--num-instances", "2", "python3", "x.py", "--num-instances", "5", "-v")
    assert (options.verbose, options.num_instances) == (2, 2)
    assert options.program == ["python3", "x.py", "--num-instances", "5", "-v"]


COMMANDS = [
    "--num-instances=2 --num-replicas=4 python3 popdist_training.py",
    "--offline-mode=yes --num-instances 8 --num-replicas 8 python host_benchmark.py",
    "-vv --vipu-partition=slurm_1 --num-instances=1 --num-replicas=4 --executable-cache-path=cache "
    "python3 train.py --config a",
    "-vv --host h0,h1 --num-ilds 2 --mpi-global-args=--mca --mpi-local-args=-x "
    "--update-partition=no --reset-partition=no x",
    "--vv --allow-run-as-root 1 --vipu-server-host h --vipu-server-port 8090 "
    "--vipu-server-timeout 120 --numa-aware 1 x",
    "--remove-partition 1 --vipu-partition-attempts 2 --vipu-cluster c --vipu-allocation a --host-subnet 10.0.0.0/8 x",
    "--print-topology 1 --only-output-from-instance 0 --ipus-per-replica 2 --debug --host-file f --max-restarts 3 x",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_documented_option_is_understood(command):
    assert parsed(*command.split()).program
