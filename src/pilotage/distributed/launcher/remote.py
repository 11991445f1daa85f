"""Start a command on another host."""

from __future__ import annotations

import enum
import shlex
import shutil
from collections.abc import Mapping, Sequence

from pilotage.errors import OptionError
from pilotage.options.environment import REMOTE_SHELL

__all__ = ["RemoteShell", "check_remote_shell", "chosen_remote_shell", "remote_command"]


class RemoteShell(enum.Enum):
    """How to start commands on other hosts. Each forwards standard input, whose end stops the instance."""

    SSH = "ssh"
    SRUN = "srun"
    MPIRUN = "mpirun"


_COMMANDS = {
    RemoteShell.SSH: ("ssh", "-o", "BatchMode=yes"),
    # One step per instance, next to other steps of the allocation, with access to all its processors.
    RemoteShell.SRUN: ("srun", "--overlap", "--nodes=1", "--ntasks=1", "--cpu-bind=none", "--unbuffered"),
    RemoteShell.MPIRUN: ("mpirun", "--bind-to", "none", "-np", "1"),
}


def chosen_remote_shell(environment: Mapping[str, str]) -> RemoteShell:
    """srun inside a SLURM allocation, where sites often forbid ssh; otherwise ssh."""
    in_allocation = "SLURM_JOB_ID" in environment and shutil.which("srun", path=environment.get("PATH")) is not None
    return RemoteShell.SRUN if in_allocation else RemoteShell.SSH


def check_remote_shell(shell: RemoteShell, environment: Mapping[str, str]) -> None:
    """Raise if this machine does not have the shell."""
    if shutil.which(shell.value, path=environment.get("PATH")) is None:
        others = ", ".join(each.value for each in RemoteShell if each is not shell)
        raise OptionError(
            f"Starting instances on other hosts needs {shell.value}, which was not found. Choose another one "
            f"with --remote-shell ({others}), or set {REMOTE_SHELL.name} to a command. Nothing was started."
        )


def remote_command(
    host: str,
    command: Sequence[str],
    *,
    shell: RemoteShell | None,
    more: Sequence[str] = (),
    environment: Mapping[str, str],
) -> list[str]:
    """The local command that runs a command on another host.

    A command in PILOTAGE_REMOTE_SHELL takes precedence: its arguments are the host and a command line for its shell.
    """
    if named := environment.get(REMOTE_SHELL.name):
        return [*shlex.split(named), host, shlex.join(command)]
    chosen = shell or chosen_remote_shell(environment)
    words = [*_COMMANDS[chosen], *(more if chosen is RemoteShell.MPIRUN else ())]
    match chosen:
        case RemoteShell.SSH:
            return [*words, host, shlex.join(command)]
        case RemoteShell.SRUN:
            return [*words, f"--nodelist={host}", *command]
        case RemoteShell.MPIRUN:
            return [*words, "--host", host, *command]
