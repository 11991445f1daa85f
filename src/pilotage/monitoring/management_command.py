"""Cards through their maker's command, nvidia-smi or hl-smi, where its library is not there."""

from __future__ import annotations

import csv
import shutil
import subprocess
from collections import defaultdict
from dataclasses import dataclass

from pilotage.monitoring.device import Device
from pilotage.monitoring.kernel_files import number_of

_PATIENCE = 10.0
_MEBIBYTE = 2**20


class CommandError(Exception):
    """The command is not there, or does not answer."""


@dataclass(frozen=True, slots=True)
class ManagementCommand:
    """A maker's command, and what it calls the values that are asked for."""

    command: str
    maker: str
    device: str
    """What torch calls its devices."""

    query: str
    """The option that takes the names of values."""

    values: tuple[str, ...]
    """Index, identity, name, driver, memory used and total, utilisation, temperature, power, and clock where it is known."""

    processes: tuple[str, ...] = ()
    """The words that ask for (identity of the card, process) in each line."""

    def devices(self) -> list[Device]:
        """All cards; raises a CommandError where they cannot be asked."""
        if shutil.which(self.command) is None:
            raise CommandError(f"{self.command} is not there")
        rows = self._ask(self.query.format(",".join(self.values)))
        pids = self._pids() if self.processes else {}
        return [self._device(row, pids) for row in rows if len(row) == len(self.values)]

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
                [self.command, *" ".join(words).split()], capture_output=True, text=True, timeout=_PATIENCE, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CommandError(f"{self.command} did not answer: {error}") from None
        if answer.returncode:
            said = (answer.stderr or answer.stdout).strip().partition("\n")[0]
            raise CommandError(f"{self.command} failed with status {answer.returncode}: {said}")
        lines = answer.stdout.splitlines()
        return [[word.strip() for word in row] for row in csv.reader(lines, skipinitialspace=True)]
