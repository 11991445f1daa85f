"""The examples of docs/libraries.md, each with its library, where that is installed."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/libraries.md").read_text()
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))

pytestmark = pytest.mark.slow


def code(text: str) -> str:
    return "\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


@pytest.fixture
def run_section(tmp_path, monkeypatch):
    """Runs the names that all examples use, then those of a section, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PILOTAGE_BACKEND", "cpu")

    def run(section: str, *libraries: str) -> dict[str, object]:
        for library in libraries:
            if importlib.util.find_spec(library) is None:
                pytest.skip(f"needs {library}")
        names: dict[str, object] = {"__name__": "page"}
        # The test looks into the run before it ends.
        text = (code(PAGE.partition("\n## ")[0]) + code(SECTIONS[section])).replace("run.finish()\n", "")
        exec(compile(text, "libraries.md", "exec"), names)
        return names

    return run


def test_tensorboard_has_a_point_for_each_step(run_section, tmp_path):
    names = run_section("TensorBoard", "tensorboard")
    names["writer"].close()
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(tmp_path / "runs"))
    found.Reload()
    assert [point.step for point in found.Scalars("loss")] == [1, 2, 3, 4]
    assert all(point.value > 0 for point in found.Scalars("updates per second"))


@pytest.mark.filterwarnings("ignore")
def test_weights_and_biases_has_the_losses_and_the_verdict(run_section, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    names = run_section("Weights & Biases", "wandb")
    summary = dict(names["run"].summary)
    names["run"].finish()
    assert summary["agrees with eager PyTorch"] is True
    assert summary["loss"] == pytest.approx(names["loss"].item())
    assert summary["tier"] == "graph"
    (folder,) = (tmp_path / "wandb").glob("offline-run-*")
    assert [*folder.glob("run-*.wandb")]


@pytest.mark.filterwarnings("ignore")
def test_hugging_face_models_and_its_trainer_train(run_section):
    names = run_section("Hugging Face", "transformers", "accelerate")
    assert names["outputs"].past_key_values is None
    assert names["trainer"]._step().record.updates == 1
    assert names["trainer"].state.global_step == 1


@pytest.mark.filterwarnings("ignore")
def test_fabric_logs_and_saves_what_the_program_has_trained(run_section, tmp_path):
    names = run_section("Lightning Fabric", "lightning_fabric")
    import torch

    saved = torch.load(tmp_path / "fabric.ckpt", weights_only=False)
    for name, weight in names["model"].state_dict().items():
        assert torch.equal(saved["model"][name], weight)
    assert all(state["step"] == 4 for state in saved["optimizer"]["state"].values())


def test_every_section_with_code_is_run_here():
    tests = Path(__file__).read_text()
    assert all(f'"{name}"' in tests for name, text in SECTIONS.items() if code(text))
