"""What is expected of each script of the corpus, read from `corpus/expectations.toml`.

- `entry`: the script to run, for packages.
- `arguments`: for the original, and for its ports unless `port_arguments` gives others for a target.
- `poptorch`, `popdist`, `hpu`, `pilotage`: `same` (ported, and proved the same), `ported` (and not run), `refused`, or
  `unchanged` (nothing to port).
- `refusals`: the rules with the text at which each place begins, and `to` where not all targets refuse it.
- `variables`: for the environment of the script.
- `findings`: what the proof reports although the port is right, by target.
"""

from __future__ import annotations

import socket
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parent / "corpus"
TARGETS = ("poptorch", "popdist", "hpu", "pilotage")
OUTCOMES = ("same", "refused", "ported", "unchanged")


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """One script or package, and what its ports must be."""

    name: str
    table: dict[str, Any]

    @property
    def path(self) -> Path:
        """The script, notebook or folder that is ported."""
        return CORPUS / self.name

    @property
    def entry(self) -> str:
        """The script to run, relative to the folder that holds the port."""
        return str(Path(self.name, self.table["entry"])) if "entry" in self.table else self.name

    def outcome(self, target: str) -> str:
        """What is expected of one target."""
        return str(self.table[target])

    def arguments(self, target: str | None = None) -> list[str]:
        """The arguments of the original, or of a port."""
        plain = self.table.get("arguments", [])
        return list(self.table.get("port_arguments", {}).get(target, plain))

    def variables(self) -> dict[str, str]:
        """For the environment of a run; a port that is to be free is chosen each time."""
        return {
            name: _free_port() if value == "free" else value for name, value in self.table.get("variables", {}).items()
        }

    def refusals(self, target: str) -> list[tuple[str, str]]:
        """Rules, and the text at which each refused place begins."""
        given = self.table.get("refusals", [])
        return [(each["rule"], each["at"]) for each in given if target in each.get("to", TARGETS)]

    def findings(self, target: str) -> list[str]:
        """What the proof reports."""
        return list(self.table.get("findings", {}).get(target, []))

    def place(self, text: str) -> tuple[str, int, int]:
        """File, line and column of a text that occurs once in the scripts."""
        files = [self.path] if self.path.is_file() else sorted(self.path.rglob("*.py"))
        found = [
            (str(file), number, line.index(text) + 1)
            for file in files
            for number, line in enumerate(file.read_text().splitlines(), 1)
            if text in line
        ]
        assert len(found) == 1, (self.name, text, found)
        return found[0]


def _free_port() -> str:
    with socket.socket() as listening:
        listening.bind(("localhost", 0))
        return str(listening.getsockname()[1])


def expectations() -> list[Expectation]:
    """All of them, in the order of the table."""
    tables = tomllib.loads((CORPUS / "expectations.toml").read_text())
    return [Expectation(name=name, table=table) for name, table in tables.items()]
