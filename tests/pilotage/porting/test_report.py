from __future__ import annotations

import json
from pathlib import Path

from pilotage.porting.finding import Finding, Severity
from pilotage.porting.report import PortedFile, Report
from pilotage.porting.target import Target

FILE = PortedFile(path=Path("a.py"), before="x\n", after="y\n", rules=("one-call",))


def finding(severity: Severity) -> Finding:
    return Finding(
        rule="loader", severity=severity, path="a.py", line=3, column=5, message="Something.", remedy="Do it."
    )


def test_a_finding_is_one_line_that_editors_can_jump_to():
    assert str(finding(Severity.WARNING)) == "a.py:3:5: warning: Something. Do it. [loader]"


def test_only_what_is_refused_or_by_hand_is_left_to_do():
    for severity, is_complete in (("NOTE", True), ("WARNING", True), ("BY_HAND", False), ("REFUSED", False)):
        report = Report(target=Target.HPU, files=[FILE], findings=[finding(Severity[severity])])
        assert report.is_complete is is_complete


def test_a_report_is_plain_json():
    report = Report(target=Target.POPDIST, files=[FILE], findings=[finding(Severity.REFUSED)])
    read = json.loads(report.to_json())
    assert (read["target"], read["complete"]) == ("popdist", False)
    assert read["files"][0]["path"] == "a.py"
    assert read["files"][0]["rules"] == ["one-call"]
    assert (read["findings"][0]["line"], read["findings"][0]["severity"]) == (3, "refused")


def test_a_report_says_which_edits_of_published_guides_were_not_followed_and_why():
    edited = PortedFile(path=Path("a.py"), before="x\n", after="y\n", rules=("optimizer", "hpu-imports"))
    read = json.loads(Report(target=Target.HPU, files=[edited], findings=[]).to_json())["guides_not_followed"]
    assert {each["rule"] for each in read} == {"optimizer", "hpu-imports"}
    assert any("SGD" in each["edit"] and "optimizer of the program" in each["instead"] for each in read)
    assert any("`TRUE` from `pickle`" in each["edit"] for each in read)
    assert json.loads(Report(target=Target.HPU, files=[FILE], findings=[]).to_json())["guides_not_followed"] == []


def test_a_diff_names_the_file_and_shows_both_lines():
    assert FILE.diff() == "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-x\n+y\n"
    assert PortedFile(path=Path("a.py"), before="x", after="x").diff() == ""
