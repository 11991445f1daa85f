"""What is expected of each script of the corpus, read from `corpus/expectations.toml`.

- `entry`: the script to run, for packages.
- `arguments`: for the original, and for its ports unless `port_arguments` gives others for a target.
- `poptorch`, `popdist`, `hpu`, `pilotage`: `same` (ported, and proved the same), `refused`, or `unchanged` (nothing to port).
- `refusals`: for targets that refuse, the rules with the text at which each place begins.
- `findings`: what the proof reports although the port is right, by target.
"""

from __future__ import annotations

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

    def refusals(self) -> list[tuple[str, str]]:
        """Rules, and the text at which the refused place begins."""
        return [(each["rule"], each["at"]) for each in self.table.get("refusals", [])]

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


def expectations() -> list[Expectation]:
    """All of them, in the order of the table."""
    tables = tomllib.loads((CORPUS / "expectations.toml").read_text())
    return [Expectation(name=name, table=table) for name, table in tables.items()]
