"""Every script of the corpus is ported for every target, and is proved the same on the CPU, or refused exactly."""

from __future__ import annotations

import ast
import json
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pilotage.cli.main import main
from pilotage.porting.driver import port_paths, port_texts
from pilotage.porting.finding import Severity
from pilotage.porting.notebooks import read_notebook
from pilotage.porting.target import Target
from pilotage.proof.comparison import Verdict, compare
from pilotage.proof.findings.rules import findings_of
from pilotage.proof.proof import Request, prove

HERE = Path(__file__).parent
EXPECTATIONS = runpy.run_path(str(HERE / "expectations.py"))
ALL = EXPECTATIONS["expectations"]()
CORPUS, TARGETS, OUTCOMES = (EXPECTATIONS[name] for name in ("CORPUS", "TARGETS", "OUTCOMES"))
STEPS = 12

SAMPLE = ("quickstart.py", "trainer_class.py", "functions_package")
"""Scripts that are proved with the normal tests, for two targets."""


def named(expected):
    return expected.name


def code_of(path, text):
    return read_notebook(path, text).source if path.suffix == ".ipynb" else text


def written(expected, target, folder):
    """Port a script or package into a folder; its entry as a script that can be run."""
    report = port_paths([expected.path], Target(target))
    assert report.is_complete, [str(each) for each in report.findings]
    if expected.path.is_dir():
        shutil.copytree(expected.path, folder / expected.name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in report.files:
        place = folder / file.path.relative_to(CORPUS)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(code_of(place, file.after))
    return folder / expected.entry


def original(expected, folder):
    """The script to run for the original."""
    if expected.path.suffix != ".ipynb":
        return CORPUS / expected.entry
    script = folder / expected.name
    script.write_text(code_of(script, expected.path.read_text()))
    return script


def proved(nursery, expected, target, before, folder):
    """Run the port, and compare it with the original's run."""
    folder.mkdir()
    script = written(expected, target, folder)
    variables = expected.variables()
    run = nursery.run(script, expected.arguments(target), folder, steps=STEPS, variables=variables)
    assert run.record.trained, "the port trained nothing"
    comparison = compare(before.record, run.record)
    if comparison.verdict is Verdict.DIVERGED:
        # In doubt, the command runs the original again with rounding errors.
        comparison = prove(Request(before=before.command, after=run.command, steps=STEPS), print).comparison
    found = sorted({each.name for each in findings_of(run.record, before.record)})
    # An update right after another one, by a second optimizer, has no products of its own.
    devices = {each.fields["device"] for each in run.record.first.updates if "device" in each.fields}
    assert devices == {"hpu" if target == "hpu" else "cpu"}
    return comparison.verdict.value, comparison.reason, found


@pytest.fixture(scope="module")
def nursery():
    """A process that has imported torch, for all proofs of this module."""
    made = runpy.run_path(str(HERE / "nursery.py"))["Nursery"]()
    yield made
    made.close()


def prove_all(nursery, expected, targets, folder):
    targets = [each for each in targets if expected.outcome(each) == "same"]
    folder.joinpath("before").mkdir()
    script = original(expected, folder / "before")
    variables = expected.variables()
    before = nursery.run(script, expected.arguments(), folder / "before", steps=STEPS, variables=variables)
    found = {each: proved(nursery, expected, each, before, folder / each) for each in targets}
    assert found == {each: ("same", None, expected.findings(each)) for each in targets}


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "expected", [each for each in ALL if "same" in {each.outcome(target) for target in TARGETS}], ids=named
)
def test_a_port_is_proved_the_same_for_every_target(expected, nursery, tmp_path):
    prove_all(nursery, expected, TARGETS, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("expected", [each for each in ALL if each.name in SAMPLE], ids=named)
def test_a_sample_of_ports_is_proved_the_same(expected, nursery, tmp_path):
    prove_all(nursery, expected, ("poptorch", "pilotage"), tmp_path)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_every_optimizer_that_a_script_offers_is_proved_for_pilotage(nursery, tmp_path):
    expected = next(each for each in ALL if each.name == "optimizer_choice.py")
    names = re.findall(r'if name == "(\w+)"', expected.path.read_text())
    assert len(names) >= 12
    script = written(expected, "pilotage", tmp_path)
    verdicts = {}
    for name in names:
        runs = []
        for kind, path in (("before", expected.path), ("after", script)):
            folder = tmp_path / f"{name}_{kind}"
            folder.mkdir()
            runs.append(nursery.run(path, ["--optimizer", name], folder, steps=STEPS).record)
        verdicts[name] = compare(*runs).verdict.value
    assert verdicts == dict.fromkeys(names, "same")


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_port_that_changes_weights_by_hand_prints_what_its_original_prints(nursery, tmp_path):
    expected = next(each for each in ALL if each.name == "manual_gradients.py")
    printed = []
    for kind, path in (("before", expected.path), ("after", written(expected, "hpu", tmp_path))):
        folder = tmp_path / kind
        folder.mkdir()
        nursery.run(path, [], folder, steps=STEPS)
        printed.append([float(each) for each in re.findall(r"\d+\.\d+", (folder / "stdout").read_text())])
    before, after = printed
    assert before
    assert after == pytest.approx(before, rel=1e-4)


@pytest.mark.parametrize("target", TARGETS)
def test_refusals_are_exact_and_leave_the_script_as_it_is(target):
    refused = [each for each in ALL if each.outcome(target) == "refused"]
    assert refused or target == "hpu"
    for expected in refused:
        report = port_paths([expected.path], Target(target))
        left = [each for each in report.findings if each.severity.is_left_to_do]
        found = [(each.rule, each.path, each.line, each.column) for each in left]
        assert found == [(rule, *expected.place(text)) for rule, text in expected.refusals(target)]
        assert all(each.message and each.remedy for each in left)
        assert not any(each.is_changed for each in report.files)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_a_port_leaves_nothing_by_hand_parses_and_does_not_change_when_it_is_ported_again(target):
    for expected in ALL:
        report = port_paths([expected.path], Target(target))
        for file in report.files:
            ast.parse(code_of(file.path, file.after))
        changed = [str(file.path) for file in report.files if file.is_changed]
        if expected.outcome(target) in ("same", "ported"):
            assert report.is_complete, [str(each) for each in report.findings]
            assert changed, expected.name
        elif expected.outcome(target) == "unchanged":
            assert (report.is_complete, changed) == (True, [])
        again = port_texts({file.path: file.after for file in report.files}, Target(target))
        assert [str(file.path) for file in again.files if file.is_changed] == [], (expected.name, target)


def test_the_table_names_every_script_and_every_target():
    there = {path.name for path in CORPUS.iterdir() if path.suffix in (".py", ".ipynb") or path.is_dir()}
    assert {expected.name for expected in ALL} == there - {"__pycache__"}
    assert len(ALL) >= 40
    for expected in ALL:
        assert {expected.outcome(target) for target in TARGETS} <= set(OUTCOMES)
        assert (CORPUS / expected.entry).is_file()


def test_the_command_ports_a_script_and_says_with_its_status_what_is_left(tmp_path, capsys):
    report = tmp_path / "report.json"
    assert main(["port", str(CORPUS / "quickstart.py"), "--to", "hpu", "--report", str(report)]) == 0
    printed = capsys.readouterr()
    assert "+        htcore.mark_step()" in printed.out
    assert json.loads(report.read_text())["complete"] is True
    assert main(["port", str(CORPUS / "gan.py"), "--to", "poptorch"]) == 1
    printed = capsys.readouterr()
    assert f"{CORPUS / 'gan.py'}:41:9: " in printed.err
    assert printed.out == ""


def test_the_command_writes_a_notebook_as_a_notebook(tmp_path):
    place = tmp_path / "ported.ipynb"
    assert main(["port", str(CORPUS / "shapes.ipynb"), "--to", "poptorch", "-o", str(place)]) == 0
    before, after = (json.loads(path.read_text()) for path in (CORPUS / "shapes.ipynb", place))
    assert [each["cell_type"] for each in after["cells"]] == [each["cell_type"] for each in before["cells"]]
    assert (after["metadata"], after["nbformat"]) == (before["metadata"], before["nbformat"])
    code = ["".join(each["source"]) for each in after["cells"] if each["cell_type"] == "code"]
    assert code[0].startswith("%matplotlib inline\n")
    assert any("poptorch.trainingModel(" in each for each in code)


@pytest.mark.parametrize("target", ["poptorch", "popdist"])
def test_a_port_warns_where_an_incomplete_last_batch_is_left_out(target):
    path = CORPUS / "uneven_batches.py"
    report = port_paths([path], Target(target))
    (warning,) = [each for each in report.findings if each.severity is Severity.WARNING]
    assert path.read_text().splitlines()[warning.line - 1].startswith("loader = DataLoader(")
    assert "incomplete" in warning.message


def test_the_tutorials_script_becomes_what_the_tutorial_shows():
    """The calls of the published port, each of which has to be in ours."""
    (file,) = [each for each in port_paths([CORPUS / "seed003"], Target.POPTORCH).files if each.is_changed]
    made = [ast.unparse(node) for node in ast.walk(ast.parse(file.after)) if isinstance(node, ast.Call)]
    for beginning in (
        "poptorch.Options()",
        "poptorch.DataLoader(options, train_dataset, batch_size=16, shuffle=True",
        "poptorch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)",
        "poptorch.trainingModel(ModelWithLoss(model, criterion), options=options, optimizer=optimizer)",
        "training_model(data, labels)",
        "poptorch.inferenceModel(model",
        "torch.save(model.state_dict(), 'classifier.pth')",
    ):
        assert any(each.startswith(beginning) for each in made), beginning
    for gone in (".to(", "zero_grad", "backward", "optimizer.step", "cuda"):
        assert gone not in file.after


TORCHRUN = f"{sys.executable} -m torch.distributed.run --standalone --nproc-per-node 2"
POPRUN = f"{Path(sys.executable).parent / 'poprun'} --num-instances=2 --num-replicas=2 {sys.executable}"


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("name", "target", "before", "after"),
    [
        ("ddp_function.py", "hpu", "", ""),
        ("ddp_function.py", "popdist", "", ""),
        ("cosmic_tagger", "hpu", "run.compute_mode=CPU", "run.compute_mode=HPU"),
    ],
)
def test_two_processes_train_as_two_processes_of_the_original_do(tmp_path, name, target, before, after):
    expected = next(each for each in ALL if each.name == name)
    script = written(expected, target, tmp_path)
    launcher = POPRUN if target == "popdist" else TORCHRUN
    command = [sys.executable, "-m", "pilotage", "prove", "--steps", "8", "--picture", "off", "--json", "result.json"]
    command += ["--before-command", f"{TORCHRUN} {CORPUS / expected.entry} {before}"]
    command += ["--after-command", f"{launcher} {script} {after}"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (tmp_path / "result.json").is_file(), ran.stderr
    result = json.loads((tmp_path / "result.json").read_text())
    assert (result["verdict"], result["findings"]) == ("same", []), ran.stdout
