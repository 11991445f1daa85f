"""The tutorial as a user runs it, on small subsets."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from PIL import Image

from pilotage.errors import PilotageError

TUTORIAL = Path(__file__).parents[2] / "examples" / "fashion_mnist"
SMALL = ("--data", "generated", "--subset", "320", "--epochs", "2")
ARTEFACTS = {"classifier.pth", "sample_images.png", "confusion_matrix.png", "image_before_after.png"}


WATCHED = """
import runpy, sys
sys.argv = sys.argv[1:]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
except SystemExit as ended:
    assert ended.code == 0, ended.code
assert "poptorch" not in sys.modules
"""


@pytest.fixture(scope="module")
def tutorial(run_in_shared_folder):
    """The whole tutorial, run through PopTorch into ``output`` and in plain PyTorch into ``plain``."""
    folder, run = run_in_shared_folder
    through_poptorch = run(TUTORIAL, "all", *SMALL)
    plain = run("-c", WATCHED, TUTORIAL, "all", *SMALL, "--plain", "--output", "plain")
    return folder, run, through_poptorch, plain


@pytest.mark.slow
def test_one_command_writes_all_files_and_equals_plain_pytorch(tutorial) -> None:
    folder, _, through_poptorch, plain = tutorial
    assert through_poptorch.returncode == 0, through_poptorch.stderr
    assert set(os.listdir(folder / "output")) == ARTEFACTS
    for name in ARTEFACTS - {"classifier.pth"}:
        with Image.open(folder / "output" / name) as image:
            image.load()
            assert min(image.size) > 300
    told = through_poptorch.stdout
    assert "accuracy over 320 test images" in told
    assert "steps per second" in told
    assert "Ankle boot" in told
    assert "poptorch.trainingModel" in told
    assert "not Fashion-MNIST" in told
    for name in ARTEFACTS:
        assert f"output/{name}" in told

    assert plain.returncode == 0, plain.stderr
    ours, theirs = (torch.load(folder / place / "classifier.pth") for place in ("output", "plain"))
    assert ours.keys() == theirs.keys()
    for name, weight in theirs.items():
        torch.testing.assert_close(ours[name], weight, rtol=1e-4, atol=1e-6)


@pytest.fixture
def weights(tutorial_module, tmp_path: Path):
    """Trains in this process and returns the saved weights."""

    def train(*words: str) -> dict[str, torch.Tensor]:
        settings = tutorial_module("command_line").parsed(["train", *SMALL, "--output", str(tmp_path), *words])[1]
        tutorial_module("tutorial").run("train", settings)
        return torch.load(settings.classifier)

    return train


@pytest.mark.slow
def test_the_seed_decides_the_weights(weights) -> None:
    one, same, other = (weights("--seed", seed) for seed in ("1", "1", "2"))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not any(torch.equal(one[name], other[name]) for name in ("conv1.weight", "fc2.bias"))


@pytest.mark.slow
def test_several_steps_in_one_call_train_the_same(weights, capsys) -> None:
    one = weights("--device-iterations", "1")
    five = weights("--device-iterations", "5")
    assert capsys.readouterr().out.count("40 on 320 images an epoch") == 2
    for name, weight in one.items():
        torch.testing.assert_close(five[name], weight, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_plain_commands_never_import_poptorch(tutorial) -> None:
    folder, run, _, plain = tutorial
    assert plain.returncode == 0, plain.stderr
    assert set(os.listdir(folder / "plain")) == ARTEFACTS
    picture = folder / "dark.png"
    Image.new("L", (50, 50), 3).save(picture)
    done = run("-c", WATCHED, TUTORIAL, "predict", picture, "--plain", "--output", "plain")
    assert done.returncode == 0, done.stderr
    assert "dark.png" in done.stdout


@pytest.mark.slow
def test_evaluate_and_predict_work_from_the_saved_file(tutorial) -> None:
    _, run, through_poptorch, _ = tutorial
    assert through_poptorch.returncode == 0, through_poptorch.stderr
    for words in (("evaluate", *SMALL[:4]), ("predict", TUTORIAL / "images/trousers.png")):
        ours, plain = run(TUTORIAL, *words), run(TUTORIAL, *words, "--plain")
        assert ours.returncode == plain.returncode == 0, ours.stderr + plain.stderr
        assert ours.stdout == plain.stdout
    assert "trousers.png: " in ours.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("predict missing.png", "The picture missing.png does not exist"),
        ("predict words.png", "words.png is not a picture"),
        ("predict --output nowhere", "nowhere/classifier.pth does not exist yet"),
        ("predict --output broken", "broken/classifier.pth does not hold this network's weights"),
        ("predict --output other", "other/classifier.pth does not hold this network's weights"),
        ("all --data missing", "missing is not a directory"),
        ("evaluate --data empty", "empty holds no file of Fashion-MNIST"),
        ("train --data generated --subset 10", "One call takes 16 images"),
        ("train --data generated --subset 20 --plain --output words.png", "words.png"),
        ("train --data missing --backend abacus", "No backend named 'abacus'"),
    ],
)
def test_errors_are_one_line(tutorial_module, tmp_path: Path, monkeypatch, words: str, part: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", os.environ.copy())
    (tmp_path / "words.png").write_text("not a picture")
    for place, content in (("empty", None), ("broken", None), ("other", {"fc3.weight": torch.zeros(1)})):
        (tmp_path / place).mkdir()
        if content is not None:
            torch.save(content, tmp_path / place / "classifier.pth")
    (tmp_path / "broken" / "classifier.pth").write_bytes(b"PK\x03\x04 cut")
    (tmp_path / "output").mkdir()
    torch.save(tutorial_module("model").GarmentClassifier().state_dict(), tmp_path / "output" / "classifier.pth")
    command, settings = tutorial_module("command_line").parsed(words.split())
    with pytest.raises((PilotageError, OSError)) as caught:
        tutorial_module("tutorial").run(command, settings)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_a_failure_ends_with_one_line_and_not_with_a_traceback(run) -> None:
    for words, status in (
        (("all", "--epochs", "none"), 2),
        (("evaluate", "--data", "missing"), 1),
        (("predict", "x"), 1),
    ):
        failed = run(TUTORIAL, *words)
        assert failed.returncode == status
        assert failed.stdout == ""
        assert failed.stderr.startswith("fashion_mnist")
        assert failed.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("how", [(), ("--plain",)], ids=["poptorch", "plain"])
def test_interrupted_training_leaves_no_partial_file_and_no_process(tmp_path: Path, environment, how) -> None:
    command = [
        sys.executable,
        str(TUTORIAL),
        "all",
        "--data",
        "generated",
        "--subset",
        "2000",
        "--epochs",
        "1000",
        *how,
    ]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stderr is not None
    seen = b""
    while b"epoch 2/1000" not in seen:
        piece = os.read(process.stderr.fileno(), 4096)
        assert piece, seen.decode()
        seen += piece
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=200)
    assert process.returncode == 130
    assert said.decode().splitlines()[-1] == "fashion_mnist: interrupted; no half-written file is left."
    assert b"Traceback" not in seen + said
    assert os.listdir(tmp_path / "output") == ["sample_images.png"]
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


INTERRUPTED = """
import runpy, sys, types
from tqdm import tqdm

def run(command, settings):
    bar = tqdm(total=2)
    raise KeyboardInterrupt

sys.modules["tutorial"] = types.SimpleNamespace(run=run)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.slow
def test_the_last_line_of_an_interrupted_run_comes_after_its_progress_bars(run) -> None:
    ended = run("-c", INTERRUPTED, TUTORIAL, "train")
    assert ended.returncode == 130
    assert ended.stderr.splitlines()[-1] == "fashion_mnist: interrupted; no half-written file is left."
