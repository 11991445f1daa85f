"""Options of one process among several."""

from __future__ import annotations

import os
from typing import Self

from poptorch._options_impl import OptionsDict


class _DistributedOptions(OptionsDict):
    """Which of how many host processes this is."""

    def __init__(self) -> None:
        super().__init__(num_distributed_processes=1, distributed_process_id=0, ipuof_configs={})
        self._read("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK")

    def disable(self) -> Self:
        """Ignore the environment: this is the only process."""
        return self.set(num_distributed_processes=1, distributed_process_id=0)

    def setEnvVarNames(self, var_num_processes: str, var_process_id: str) -> Self:
        """Read the number of processes and the index of this one from variables of these names."""
        self._read(var_num_processes, var_process_id)
        return self

    def configureProcessId(self, process_id: int, num_processes: int) -> Self:
        """Say which of how many processes this is."""
        return self.set(distributed_process_id=process_id, num_distributed_processes=num_processes)

    @property
    def processId(self) -> int:
        """The index of this process."""
        process_id: int = self.distributed_process_id
        return process_id

    @property
    def numProcesses(self) -> int:
        """How many processes there are."""
        num_processes: int = self.num_distributed_processes
        return num_processes

    def _read(self, var_num_processes: str, var_process_id: str) -> None:
        self.set(
            num_distributed_processes=_whole_number(var_num_processes, default=1),
            distributed_process_id=_whole_number(var_process_id, default=0),
        )


def _whole_number(variable: str, default: int) -> int:
    text = os.environ.get(variable)
    if not text:
        return default
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"The environment variable {variable} is {text!r}. It must be a whole number.") from None
