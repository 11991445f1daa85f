"""The emulated card as hl-smi shows it, in the forms that public programs parse."""

from __future__ import annotations

import re

import pytest

from pilotage.cli.monitor.hl_smi import VALUES, main
from pilotage.monitoring import management_command
from pilotage.monitoring.cards import GAUDI, find_cards


def shown(capsys, *arguments: str) -> list[str]:
    assert main(arguments) == 0
    return capsys.readouterr().out.splitlines()


def test_the_third_line_of_the_table_has_the_drivers_version(capsys):
    lines = shown(capsys)
    # As optimum-habana reads it.
    assert lines[2].replace(" ", "").split(":")[1][:-1].split("-")[0] == "1.24.0"
    assert len({len(line) for line in lines}) == 1
    assert any("HL-225 (emulated)" in line for line in lines)
    assert any(re.search(r"\d+ MiB / \d+ MiB", line) for line in lines)


def test_the_version_has_the_words_that_programs_look_for(capsys):
    (line,) = shown(capsys, "-v")
    assert "Habana" in line
    assert re.search(r"hl-([\d.]+)", line)[1].startswith("1.24")
    assert re.search(r"fw-([\d.]+)", line)


def test_values_are_printed_as_csv(capsys):
    header, values = shown(capsys, "-Q", "index,name,memory.total,utilization.aip", "-f", "csv")
    assert header == "index,name,memory.total,utilization.aip"
    assert re.fullmatch(r"0,HL-225 \(emulated\),\d+ MiB,(\d+ %|N/A)", values)
    (bare,) = shown(capsys, "-Q", "memory.used", "-f", "csv,noheader,nounits")
    assert bare.isdigit()
    (everything,) = shown(capsys, "-Q", ",".join(VALUES), "-f", "csv,noheader")
    assert everything.count(",") == len(VALUES) - 1


def test_cards_and_sections_are_listed(capsys):
    assert shown(capsys, "-L")[0].startswith("AIP 0: HL-225 (emulated)")
    details = shown(capsys, "-q", "-d", "MEMORY")
    assert details[1].strip() == "MEMORY"
    assert "none, the card is emulated" in shown(capsys, "--fw-versions")[1]


@pytest.mark.parametrize("wrong", [["-Q", "colour"], ["-f", "xml"], ["-d", "NOTHING"]])
def test_an_unknown_value_is_refused(capsys, wrong):
    with pytest.raises(SystemExit):
        main(wrong)
    assert "hl-smi: error" in capsys.readouterr().err
    assert main(["-i", "1111:00:00.0"]) == 1


def test_the_monitor_does_not_take_the_emulated_card_for_a_real_one(capsys, monkeypatch):
    (command,) = (source for source in GAUDI if isinstance(source, management_command.ManagementCommand))
    main(["-Q", ",".join(command.values), "-f", "csv,noheader,nounits"])
    row = capsys.readouterr().out.strip().split(",")
    monkeypatch.setattr(management_command.shutil, "which", lambda name: name)
    monkeypatch.setattr(management_command.ManagementCommand, "_ask", lambda *_: [row])
    found = find_cards("Gaudi", (command,), 0)
    assert (found.devices, found.note) == ((), "Gaudi: no card.")
