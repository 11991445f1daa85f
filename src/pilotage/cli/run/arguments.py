"""The options of poprun."""

from __future__ import annotations

import argparse
from argparse import ArgumentParser, ArgumentTypeError

from pilotage.distributed.launcher.remote import RemoteShell

__all__ = ["SERVER_OPTIONS", "add_arguments"]

SERVER_OPTIONS = {
    "vipu_server_host": "H",
    "vipu_server_port": "P",
    "vipu_server_timeout": "S",
    "vipu_partition": "NAME",
    "vipu_partition_attempts": "N",
    "update_partition": "0|1",
    "reset_partition": "0|1",
    "remove_partition": "0|1",
    "vipu_cluster": "NAME",
    "vipu_allocation": "NAME",
}
"""Options for a server that allocates IPUs; they have no effect."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add poprun's options, and the program to start."""
    parser.allow_abbrev = False
    _add_scale(parser)
    _add_hosts(parser)
    _add_output(parser)
    _add_environment(parser)
    server = parser.add_argument_group("options of a V-IPU server", "accepted without effect: no server is used")
    for name, shown in SERVER_OPTIONS.items():
        server.add_argument(_flag(name), metavar=shown)
    parser.add_argument("program", nargs=argparse.REMAINDER, help="the program to start, and its arguments")


def switch(text: str) -> bool:
    """Parse 0, 1, yes, no, true, false, on and off."""
    match text.lower():
        case "1" | "yes" | "true" | "on":
            return True
        case "0" | "no" | "false" | "off":
            return False
    raise ArgumentTypeError(f"{text!r} is neither 1 (yes) nor 0 (no)")


def _add_scale(parser: ArgumentParser) -> None:
    scale = parser.add_argument_group("scale")
    scale.add_argument("--num-instances", type=int, metavar="N", help="number of processes (1)")
    scale.add_argument(
        "--num-replicas", type=int, metavar="N", help="copies of the model in all instances together (one per instance)"
    )
    scale.add_argument("--ipus-per-replica", type=int, metavar="N", help="devices that one copy is spread over (1)")
    scale.add_argument(
        "--num-ilds", type=int, metavar="N", help="groups of 64 IPUs, which limit the size of a job (one per host)"
    )
    scale.add_argument("--numa-aware", type=switch, metavar="0|1", help="bind instances to NUMA nodes in turn")
    scale.add_argument("--offline-mode", type=switch, metavar="yes|no", help="run on the CPU instead of an accelerator")
    scale.add_argument("--exchange-timeout", type=int, metavar="S", help="seconds to wait for a silent instance (120)")
    scale.add_argument("--max-restarts", type=int, metavar="N", help="how many times to restart after a failure (0)")


def _add_hosts(parser: ArgumentParser) -> None:
    hosts = parser.add_argument_group("hosts")
    one = hosts.add_mutually_exclusive_group()
    one.add_argument("-H", "--host", metavar="LIST", help="host0,host1 or host[0-2,4]; instances are divided evenly")
    one.add_argument("--host-file", "--hostfile", metavar="FILE", help="a file with one host in each line")
    hosts.add_argument("--host-subnet", metavar="CIDR", help="the network between the hosts, such as 10.1.0.0/16")
    hosts.add_argument(
        "--remote-shell",
        choices=[each.value for each in RemoteShell],
        help="how to start instances on other hosts (srun inside a SLURM allocation, otherwise ssh)",
    )


def _add_output(parser: ArgumentParser) -> None:
    output = parser.add_argument_group("output")
    output.add_argument("--print-topology", type=switch, metavar="0|1", help="print which replica goes where")
    output.add_argument(
        "--only-output-from-instance", type=int, metavar="N", help="hide the output and errors of the other instances"
    )
    output.add_argument(
        "-v", "--verbose", action="count", help="log each step; -vv also logs the variables of each instance"
    )
    output.add_argument("--vv", dest="verbose", action="store_const", const=2, help="the same as -vv")
    output.add_argument(
        "--debug", action="store_true", default=None, help="enable the debug logs of torch.distributed and NCCL"
    )
    output.add_argument(
        "--version-format", choices=["text", "full-text", "full-json"], help="format of --version (text)"
    )
    output.add_argument("--version", action="store_true", help="print the version")


def _add_environment(parser: ArgumentParser) -> None:
    environment = parser.add_argument_group("environment and configuration")
    environment.add_argument(
        "--executable-cache-path", metavar="DIR", help="the directory in which all instances keep compiled programs"
    )
    environment.add_argument(
        "--mpi-global-args", metavar="ARGS", help="arguments for mpirun, with --remote-shell mpirun"
    )
    environment.add_argument(
        "--mpi-local-args", metavar="ARGS", help="only -x VAR and -x VAR=VALUE, which set variables"
    )
    environment.add_argument(
        "--allow-run-as-root", type=switch, metavar="0|1", help="accepted without effect: root may always run it"
    )
    environment.add_argument(
        "--import-config", metavar="FILE", help="read options from a file; the command line takes precedence"
    )
    environment.add_argument("--export-config", metavar="FILE", help="write these options to a file and start nothing")
    environment.add_argument("--overwrite-config", type=switch, metavar="0|1", help="overwrite an existing file (0)")


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
