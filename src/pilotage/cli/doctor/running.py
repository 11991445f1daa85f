"""Run `pilotage doctor`: examine everything and print the findings."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from pilotage.cli.command import Command
from pilotage.cli.doctor import cards, compilers, display, machine, packages, versions
from pilotage.cli.doctor.engine import examine_engine
from pilotage.cli.doctor.finding import Examination, Section
from pilotage.options import environment

__all__ = ["COMMAND", "examine"]


def examine() -> Examination:
    """Examine the whole machine."""
    torch_finding, torch = versions.examine_torch()
    present = machine.count_cards()
    devices = (
        machine.processor(),
        machine.memory(),
        cards.examine_cuda(torch, present.nvidia),
        cards.examine_gaudi(torch, present.gaudi),
        cards.examine_ipu(present.ipu),
    )
    tools = (
        compilers.examine_compiler(environment.cpp_compiler()),
        compilers.examine_headers(),
        compilers.examine_triton(),
    )
    names = (
        packages.examine_drop_in("poptorch", "Graphcore"),
        packages.examine_drop_in("popdist", "Graphcore"),
        packages.examine_habana(),
        packages.examine_plug_ins(),
    )
    stack = (versions.examine_python(), torch_finding, versions.examine_numpy(), versions.examine_pilotage())
    return Examination(
        (
            Section("Devices", devices),
            Section("Versions", stack),
            Section("Compilers", tools),
            Section("Vendors' packages", names),
            Section("Engine", examine_engine(torch)),
        )
    )


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def _run(arguments: Namespace) -> int:
    examination = examine()
    if arguments.json:
        print(display.as_json(examination))
    else:
        display.show(examination)
    return 0 if examination.can_run else 1


COMMAND = Command(
    name="doctor",
    summary="Examine this machine: devices, versions, which backend would run, and what to fix.",
    add_arguments=_add_arguments,
    run=_run,
)
