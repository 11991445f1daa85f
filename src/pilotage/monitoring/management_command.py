"""Cards as reported by nvidia-smi or hl-smi, for when the management library is missing."""

from __future__ import annotations

import csv
import shutil
import subprocess
from collections import defaultdict
from dataclasses import dataclass

from pilotage.monitoring.device import Device
from pilotage.monitoring.kernel_files import number_of

_TIMEOUT = 10.0
_MEBIBYTE = 2**20


def _is_emulated(row: list[str]) -> bool:
    """Whether the emulated Gaudi answers, whose own hl-smi reads the processor."""
    return "(emulated)" in row[2]


class CommandError(Exception):
    """The command was not found, or does not answer."""


@dataclass(frozen=True, slots=True)
class ManagementCommand:
    """A vendor's command, and its names for the values to query."""

    command: str
    maker: str
    device: str
    """torch's name for its devices."""

    query: str
    """The option that takes the names of the values."""

    values: tuple[str, ...]
    """Index, identity, name, driver, memory used and total, utilisation, temperature, power, and optionally clock."""

    processes: tuple[str, ...] = ()
    """The arguments that print (identity of the card, process) per line."""

    def devices(self) -> list[Device]:
        """All cards; raises a CommandError if the command fails."""
        if shutil.which(self.command) is None:
            raise CommandError(f"{self.command} was not found")
        rows = self._ask(self.query.format(",".join(self.values)))
        pids = self._pids() if self.processes else {}
        return [self._device(row, pids) for row in rows if len(row) == len(self.values) and not _is_emulated(row)]

    def _device(self, row: list[str], pids: dict[str, set[int]]) -> Device:
        number, identity, name, driver, *rest = row
        used, total, share, temperature, power, *clock = map(number_of, rest)
        return Device(
            id=f"{self.device}:{number}",
            maker=self.maker,
            name=name,
            identity=identity,
            driver=driver,
            memory_used=None if used is None else int(used * _MEBIBYTE),
            memory_total=None if total is None else int(total * _MEBIBYTE),
            utilisation=None if share is None else share / 100,
            temperature=temperature,
            power=power,
            clock=clock[0] if clock else None,
            pids=frozenset(pids.get(identity, ())),
        )

    def _pids(self) -> dict[str, set[int]]:
        found = defaultdict(set)
        for row in self._ask(*self.processes):
            if len(row) == 2 and row[1].isdigit():
                found[row[0]].add(int(row[1]))
        return found

    def _ask(self, *words: str) -> list[list[str]]:
        try:
            answer = subprocess.run(
                [self.command, *" ".join(words).split()], capture_output=True, text=True, timeout=_TIMEOUT, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CommandError(f"{self.command} did not answer: {error}") from None
        if answer.returncode:
            reason = (answer.stderr or answer.stdout).strip().partition("\n")[0]
            raise CommandError(f"{self.command} failed with status {answer.returncode}: {reason}")
        lines = answer.stdout.splitlines()
        return [[word.strip() for word in row] for row in csv.reader(lines, skipinitialspace=True)]
