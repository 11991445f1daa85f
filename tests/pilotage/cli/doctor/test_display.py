import io
import json

from rich.console import Console

from pilotage.cli.doctor.display import as_json, as_plain_text, conclusion, print_rich, show
from pilotage.cli.doctor.finding import Examination, Finding, Section, Verdict

CPU = Finding(name="CPU", value="Swift 9000, 2 cores", facts={"cores": 2})
CUDA = Finding(
    name="CUDA", value="1 card, not usable", verdict=Verdict.WARNING, remedy="Install a CUDA build of torch."
)
TORCH = Finding(name="torch", value="not installed", verdict=Verdict.PROBLEM, remedy="pip install 'pilotage[torch]'")
WELL = Examination((Section("Devices", (CPU,)),))
WARNED = Examination((Section("Devices", (CPU, CUDA)),))
ILL = Examination((Section("Devices", (CPU, CUDA)), Section("Versions", (TORCH,))))


def test_a_problem_stops_the_engine_and_a_warning_does_not():
    assert WELL.can_run
    assert WARNED.can_run
    assert not ILL.can_run


def test_the_conclusion_counts_the_problems():
    assert conclusion(WELL) == "Pilotage can run here."
    assert conclusion(WARNED) == "Pilotage can run here: 1 warning."
    assert conclusion(ILL) == "Pilotage cannot run here: 1 problem and 1 warning."


def test_json_carries_the_facts_and_the_verdicts():
    read = json.loads(as_json(ILL))
    assert read["can_run"] is False
    assert read["sections"]["Devices"][0] == {
        "name": "CPU",
        "value": "Swift 9000, 2 cores",
        "verdict": "good",
        "remedy": None,
        "facts": {"cores": 2},
    }


def test_plain_text_is_aligned_and_paths_are_not_broken():
    path = "/a/rather/long/path/that/has/to/stay/whole/so/that/it/can/be/copied/from/the/terminal"
    text = as_plain_text(
        Examination((Section("Versions", (Finding(name="Python", value=f"3.11 at {path}"),)),)), width=60
    )
    assert text.splitlines()[:3] == ["Versions", "  ok Python  3.11 at", f"             {path}"]


def test_every_finding_and_remedy_is_shown_with_and_without_rich():
    console = Console(file=io.StringIO(), width=120)
    print_rich(ILL, console)
    for shown in (as_plain_text(ILL, width=120), console.file.getvalue()):
        for finding in ILL.findings:
            assert finding.value in shown
            assert finding.remedy is None or finding.remedy in shown
        assert conclusion(ILL) in shown


def test_square_brackets_are_not_parsed_as_colours():
    console = Console(file=io.StringIO(), width=120)
    print_rich(ILL, console)
    assert "pilotage[torch]" in console.file.getvalue()


def test_a_terminal_without_unicode_gets_what_it_can_show(monkeypatch):
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", narrow)
    show(Examination((Section("Devices", (Finding(name="CUDA", value="2 × card"),)),)))
    narrow.flush()
    assert b"2 ? card" in narrow.buffer.getvalue()
