"""The entry point of `hl-smi`: the emulated Gaudi card, with the figures of the processor that computes for it."""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime

from pilotage.monitoring.device import Device
from pilotage.monitoring.processor import Processor

__all__ = ["build_parser", "main"]

RELEASE = "1.24.0"
"""The release of the vendor's software whose interface is emulated."""
NAME = "HL-225 (emulated)"
_DRIVER = f"{RELEASE}-emulated"
_WIDTH = 79
_MEBIBYTE = 2**20
_BUS = "0000:00:00.0"
_SECTIONS = ("PRODUCT", "POWER", "CLOCK", "TEMPERATURE", "FAN", "BUS", "MEMORY", "NET", "ROW_REPLACEMENT")
_UNKNOWN = "N/A"


def _mebibytes(size: int | None) -> str:
    return _UNKNOWN if size is None else f"{size // _MEBIBYTE} MiB"


def _free(card: Device) -> int | None:
    return None if card.memory_total is None or card.memory_used is None else card.memory_total - card.memory_used


def _percent(card: Device) -> str:
    return _UNKNOWN if card.utilisation is None else f"{100 * card.utilisation:.0f} %"


def _degrees(card: Device) -> str:
    return _UNKNOWN if card.temperature is None else f"{card.temperature:.0f} C"


def _watts(card: Device) -> str:
    return _UNKNOWN if card.power is None else f"{card.power:.0f} W"


VALUES: dict[str, Callable[[Device], str]] = {
    "timestamp": lambda card: f"{datetime.now():%a %b %d %H:%M:%S %Y}",
    "name": lambda card: NAME,
    "bus_id": lambda card: _BUS,
    "driver_version": lambda card: _DRIVER,
    "temperature.aip": _degrees,
    "module_id": lambda card: "0",
    "utilization.aip": _percent,
    "memory.total": lambda card: _mebibytes(card.memory_total),
    "memory.free": lambda card: _mebibytes(_free(card)),
    "memory.used": lambda card: _mebibytes(card.memory_used),
    "index": lambda card: "0",
    "serial": lambda card: _UNKNOWN,
    "uuid": lambda card: "emulated-0",
    "power.draw": _watts,
    **dict.fromkeys(
        (
            *(
                f"ecc.errors.{kind}.{span}.total"
                for kind in ("corrected", "uncorrected")
                for span in ("aggregate", "volatile")
            ),
            "ecc.mode.current",
            "ecc.mode.pending",
            "stats.violation.power",
            "stats.violation.thermal",
        ),
        lambda card: _UNKNOWN,
    ),
}
"""The values that -Q can ask for."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Show the emulated card as hl-smi shows cards."""
    given = build_parser().parse_args(arguments)
    if given.version:
        print(f"Habana Labs hl-smi, emulated by Pilotage: version hl-{RELEASE}-fw-0.0.0.0")
        return 0
    if given.fw_versions:
        print(f"[0] AIP ({_BUS})\n\tFirmware: none, the card is emulated")
        return 0
    if given.i not in (None, _BUS, "0"):
        print(f"hl-smi: no card {given.i!r}; there is one, {_BUS}.", file=sys.stderr)
        return 1
    processor = Processor()
    while True:
        try:
            _show(given, processor.read())
            if given.l is None:
                return 0
            time.sleep(given.l)
        except KeyboardInterrupt:
            return 130


def build_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = argparse.ArgumentParser(prog="hl-smi", description="Show the emulated Gaudi card.")
    parser.add_argument("-L", dest="list", action="store_true", help="list the cards")
    parser.add_argument("-q", dest="query", action="store_true", help="show all values")
    parser.add_argument("-d", metavar="SECTION", choices=_SECTIONS, help=f"one of: {', '.join(_SECTIONS)}; with -q")
    parser.add_argument("-i", metavar="PCI", help="one card")
    parser.add_argument("-l", nargs="?", type=float, const=5.0, metavar="SECONDS", help="repeat (every 5 seconds)")
    parser.add_argument("-v", "--version", dest="version", action="store_true", help="print the version")
    parser.add_argument("--fw-versions", action="store_true", help="print the versions of the firmware")
    parser.add_argument(
        "-Q", type=_named_values, metavar="VALUES", help="print values, separated by commas; with -f csv"
    )
    parser.add_argument("-f", type=_named_format, metavar="csv[,noheader][,nounits]", help="how -Q prints")
    return parser


def _named_values(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if unknown := [name for name in names if name not in VALUES]:
        raise argparse.ArgumentTypeError(f"no value {unknown[0]!r}; choose among: {', '.join(VALUES)}")
    return names


def _named_format(text: str) -> set[str]:
    words = {word.strip() for word in text.split(",")}
    if "csv" not in words or words - {"csv", "noheader", "nounits"}:
        raise argparse.ArgumentTypeError(f"{text!r} is not csv[,noheader][,nounits]")
    return words


def _show(given: argparse.Namespace, card: Device) -> None:
    if given.Q:
        _print_values(given.Q, given.f or {"csv"}, card)
    elif given.list:
        print(f"AIP 0: {NAME} (UUID: emulated-0, bus {_BUS})")
    elif given.query:
        print("\n".join(_details(given.d, card)))
    else:
        print("\n".join(table(card)))


def _print_values(names: list[str], words: set[str], card: Device) -> None:
    values = [VALUES[name](card) for name in names]
    if "nounits" in words:
        values = [
            value.removesuffix(" MiB").removesuffix(" %").removesuffix(" C").removesuffix(" W") for value in values
        ]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if "noheader" not in words:
        writer.writerow(names)
    writer.writerow(values)


def _details(section: str | None, card: Device) -> list[str]:
    parts = {
        "PRODUCT": {"Product Name": NAME, "Driver": _DRIVER, "Computed by": card.name},
        "POWER": {"Power Draw": _watts(card)},
        "CLOCK": {"Clock": _UNKNOWN if card.clock is None else f"{card.clock:.0f} MHz"},
        "TEMPERATURE": {"On-chip": _degrees(card)},
        "BUS": {"Bus Id": _BUS},
        "MEMORY": {"Total": _mebibytes(card.memory_total), "Used": _mebibytes(card.memory_used)},
    }
    lines = [f"[0] AIP ({_BUS})"]
    for name in _SECTIONS if section is None else (section,):
        lines.append(f"\t{name}")
        values = parts.get(name) or {"All values": _UNKNOWN}
        lines += [f"\t\t{key:<24}: {value}" for key, value in values.items()]
    return lines


def table(card: Device) -> list[str]:
    """The table that programs read: the third line has the version of the driver."""
    border = f"+{'-' * _WIDTH}+"
    columns = (31, 22, 22)
    rule = "|" + "+".join("-" * (width + 1) for width in columns)[: _WIDTH - 1] + "-|"

    def row(*cells: str) -> str:
        text = "|".join(f" {cell:<{width}}" for cell, width in zip(cells, columns, strict=True))
        return f"|{text[:_WIDTH]:<{_WIDTH}}|"

    def line(name: str, value: str) -> str:
        return f"| {name:<32}{value:>{_WIDTH - 34}} |"

    memory = f"{_mebibytes(card.memory_used)} / {_mebibytes(card.memory_total)}"
    return [
        border,
        line("HL-SMI Version:", f"hl-{RELEASE}-fw-0.0.0.0"),
        line("Driver Version:", _DRIVER),
        line("Nic Driver Version:", _DRIVER),
        rule,
        row("AIP  Name        Persistence-M", "Bus-Id        Disp.A", "Volatile Uncorr. ECC"),
        row("Fan  Temp  Perf  Pwr:Usage/Cap", "Memory-Usage", "AIP-Util  Compute M."),
        f"|{'=' * _WIDTH}|",
        row(f"  0  {NAME:<17}  N/A", _BUS, "N/A"),
        row(f"N/A  {_degrees(card):<5} N/A   {_watts(card)} / N/A", memory, f"{_percent(card)}  Default"),
        border,
    ]


if __name__ == "__main__":
    sys.exit(main())
