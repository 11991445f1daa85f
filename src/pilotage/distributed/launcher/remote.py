"""How a command is started on another host."""

from __future__ import annotations

import enum
import shlex
import shutil
from collections.abc import Mapping, Sequence

from pilotage.errors import OptionError
from pilotage.options.environment import REMOTE_SHELL

__all__ = ["RemoteShell", "check_remote_shell", "chosen_remote_shell", "remote_command"]


class RemoteShell(enum.Enum):
    """What carries commands to other hosts. Each of them passes standard input on, whose end is the end of the instance."""

    SSH = "ssh"
    SRUN = "srun"
    MPIRUN = "mpirun"


_WORDS = {
    RemoteShell.SSH: ("ssh", "-o", "BatchMode=yes"),
    # One step for each instance, beside whatever else the allocation runs, and free to use all processors it has there.
    RemoteShell.SRUN: ("srun", "--overlap", "--nodes=1", "--ntasks=1", "--cpu-bind=none", "--unbuffered"),
    RemoteShell.MPIRUN: ("mpirun", "--bind-to", "none", "-np", "1"),
}


def chosen_remote_shell(environment: Mapping[str, str]) -> RemoteShell:
    """Inside of an allocation of SLURM its own launcher, as sites often forbid ssh there; ssh everywhere else."""
    in_allocation = "SLURM_JOB_ID" in environment and shutil.which("srun", path=environment.get("PATH")) is not None
    return RemoteShell.SRUN if in_allocation else RemoteShell.SSH


def check_remote_shell(shell: RemoteShell, environment: Mapping[str, str]) -> None:
    """Refuse a shell that is not on this machine."""
    if shutil.which(shell.value, path=environment.get("PATH")) is None:
        others = ", ".join(each.value for each in RemoteShell if each is not shell)
        raise OptionError(
            f"Other hosts are to be reached by {shell.value}, which is not on this machine. Choose another one by "
            f"--remote-shell ({others}), or name a command in {REMOTE_SHELL.name}. Nothing was started."
        )


def remote_command(
    host: str,
    command: Sequence[str],
    *,
    shell: RemoteShell | None,
    more: Sequence[str] = (),
    environment: Mapping[str, str],
) -> list[str]:
    """What is executed here to have the command run there.

    A command in PILOTAGE_REMOTE_SHELL counts more than any choice: it is given the host, and a line for the host's own shell.
    """
    if named := environment.get(REMOTE_SHELL.name):
        return [*shlex.split(named), host, shlex.join(command)]
    chosen = shell or chosen_remote_shell(environment)
    words = [*_WORDS[chosen], *(more if chosen is RemoteShell.MPIRUN else ())]
    match chosen:
        case RemoteShell.SSH:
            return [*words, host, shlex.join(command)]
        case RemoteShell.SRUN:
            return [*words, f"--nodelist={host}", *command]
        case RemoteShell.MPIRUN:
            return [*words, "--host", host, *command]
