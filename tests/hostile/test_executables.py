"""Modified executables: none runs code, touches another file, exceeds its memory limit, or hangs."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hostile.executables import MEMORY
from hostile.mutations import damaged, mutated
from hostile.sandbox import Outcome, Sandbox
from torch import nn
from torch.nn import functional

import poptorch
from pilotage.storage.archive import read_archive, write_archive

hypothesis = pytest.importorskip("hypothesis")
strategies = pytest.importorskip("hypothesis.strategies")

pytestmark = pytest.mark.slow

SLACK = 192 << 20
"""The memory that Python and torch need to read a file and run a small program."""

CHECKS = [hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.function_scoped_fixture]


class Pictures(nn.Module):
    """Convolution, pooling with indices, normalisation, dropout, a constant and a buffer that is written."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.convolution, self.norm = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.linear, self.drop = nn.Linear(36, 3), nn.Dropout(0.5)

    def forward(self, pictures, labels):
        hidden = functional.max_pool2d(self.norm(self.convolution(pictures)), 2).relu()
        scores = self.linear(self.drop(hidden.flatten(1))) + torch.tensor([0.5, 1.0, 2.0])
        return {"scores": scores, "loss": functional.cross_entropy(scores, labels)}


class Words(nn.Module):
    """Embeddings, attention and indexing."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.table, self.layer = nn.Embedding(11, 8), nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, words, factor=2.0):
        hidden = self.layer(self.table(words)) * factor
        return hidden.gather(1, words[:, :1, None].clamp(max=3).expand(-1, 1, 8)), [hidden.topk(2).values]


def _options(**settings) -> poptorch.Options:
    return poptorch.Options().runOn("cpu", tier="graph").showCompilationProgressBar(False)


@pytest.fixture(scope="module")
def originals(tmp_path_factory) -> list[Path]:
    """Executables as `save` writes them: two trainers, and one for inference."""
    folder = tmp_path_factory.mktemp("originals")
    files = [folder / name for name in ("adam", "accumulating", "words")]
    pictures, labels = torch.rand(4, 1, 6, 6), torch.tensor([0, 1, 2, 0])
    module = Pictures()
    model = poptorch.trainingModel(module, _options(), poptorch.optim.Adam(module.parameters(), lr=0.01))
    model.compileAndExport(files[0], pictures, labels)
    module, options = Pictures(), _options().deviceIterations(2)
    options.Training.gradientAccumulation(2)
    model = poptorch.trainingModel(module, options, poptorch.optim.SGD(module.parameters(), lr=0.01, momentum=0.9))
    model.compileAndExport(files[1], pictures, labels)
    model = poptorch.inferenceModel(Words().eval(), _options())
    model.compileAndExport(files[2], torch.randint(11, (2, 5)))
    return files


@pytest.fixture(scope="module")
def sandbox(originals, tmp_path_factory) -> Iterator[Sandbox]:
    """The sandbox for modified files."""
    folder = tmp_path_factory.mktemp("sandbox")
    with Sandbox("hostile.executables:load_and_run", folder / "empty", originals[0]) as sandbox:
        yield sandbox


def harmless(outcome: Outcome) -> bool:
    return (
        outcome.ended in ("done", "refused")
        and not outcome.violations
        and outcome.growth < MEMORY + SLACK
        and outcome.said.partition(":")[0]
        not in ("KeyError", "IndexError", "TypeError", "AttributeError", "UnboundLocalError")
    )


def test_unmodified_executables_run_in_the_sandbox(originals, sandbox):
    for original in originals:
        outcome = sandbox.attempt(original)
        assert (outcome.said, outcome.violations) == ("run", ())


def test_the_sandbox_detects_every_forbidden_action(tmp_path, sandbox):
    """Test the audit hook itself with a function that does everything a file must not."""
    with Sandbox("hostile.misdeeds:do", tmp_path / "empty", tmp_path / "nothing", seconds=2, memory=1 << 30) as watched:
        outcomes = {
            name: watched.attempt(tmp_path / name) for name in ("write", "execute", "start", "hang", "crash", "grow")
        }
    assert "opens MARKER for writing" in outcomes["write"].violations
    assert any("touched" in found for found in outcomes["write"].violations)
    assert any("executes" in found for found in outcomes["execute"].violations)
    assert any(found.startswith("subprocess") for found in outcomes["start"].violations)
    assert outcomes["hang"].ended == "hung"
    assert outcomes["crash"].ended == "crashed"
    assert outcomes["grow"].growth > 256 << 20
    assert not any(map(harmless, outcomes.values()))


def campaign(originals, sandbox, tmp_path, count: int) -> Counter:
    """Try modified files; returns how often each outcome occurred."""
    contents = [read_archive(original) for original in originals]
    seen = Counter()

    @hypothesis.settings(
        max_examples=count, deadline=None, database=None, derandomize=True, suppress_health_check=CHECKS
    )
    @hypothesis.given(strategies.integers(0, 2**32 - 1))
    def try_one(seed):
        draw = random.Random(seed)
        number = draw.randrange(len(originals))
        path = tmp_path / "altered"
        if draw.random() < 0.85:
            write_archive(path, *mutated(*contents[number], draw))
        else:
            path.write_bytes(damaged(originals[number].read_bytes(), draw))
        outcome = sandbox.attempt(path)
        seen[outcome.ended if outcome.ended != "done" else outcome.said.partition(":")[0]] += 1
        assert harmless(outcome), (seed, outcome)

    try_one()
    return seen


def test_a_sample_of_modified_executables_is_harmless(originals, sandbox, tmp_path):
    seen = campaign(originals, sandbox, tmp_path, 60)
    assert seen["refused"] > 20


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_two_thousand_modified_executables_are_harmless(originals, sandbox, tmp_path):
    seen = campaign(originals, sandbox, tmp_path, 2000)
    assert seen["refused"] > 500
    assert seen["run"] > 100
