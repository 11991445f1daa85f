"""A damaged, swapped or unwritable cache never changes results and never stops training."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest
import torch
from torch import nn

import pilotage
from pilotage.cache.locks import BuildFolder
from pilotage.compiler.cache import NativeCache, write_manifest
from pilotage.compiler.tuning import Tuning
from pilotage.errors import OptionError
from pilotage.events import Warned
from pilotage.options.choices import Tier

BATCH = torch.randn(4, 8, generator=torch.Generator().manual_seed(1)), torch.ones(4, 1)

INFERENCE = """
import json, sys
sys.path[:0] = {path!r}
import torch
from torch import nn
import pilotage
inputs = torch.linspace(-2, 2, 4096).reshape(64, 64)
said, results = [], {{}}
for model in (nn.ReLU(), nn.Tanh()):
    wrapped = pilotage.inference(model, backend="cpu", tier={tier!r}, cache_directory={cache!r},
                                 listeners=[lambda event: said.append(getattr(event, "message", ""))])
    results[type(model).__name__] = (wrapped(inputs) - model(inputs)).abs().max().item()
    wrapped.destroy()
print(json.dumps([results, said]))
"""


def infer(cache, tier=None):
    """In a new process: a process that has loaded a library does not load it again from the same path."""
    program = INFERENCE.format(path=sys.path, tier=tier, cache=str(cache))
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return json.loads(ran.stdout.splitlines()[-1])


@pytest.mark.long
@pytest.mark.timeout(900)
def test_swapped_cache_entries_are_not_used(tmp_path):
    differences, _ = infer(tmp_path, "compiled")
    assert all(difference < 1e-6 for difference in differences.values())
    one, other = (path for path in tmp_path.iterdir() if path.is_dir())
    one.rename(tmp_path / "between")
    other.rename(one)
    (tmp_path / "between").rename(other)
    differences, said = infer(tmp_path)
    assert all(difference < 1e-6 for difference in differences.values()), differences
    refusals = [message for message in said if "compiled for something else" in message]
    assert len(refusals) == 2
    assert all("operations" in message and "It is compiled again" in message for message in refusals)


def trainer(cache, **options):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    heard = []
    wrapped = pilotage.training(
        model,
        torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9),
        loss=nn.MSELoss(),
        backend="cpu",
        cache_directory=cache,
        listeners=[heard.append],
        **options,
    )
    return wrapped, heard


def warnings(heard):
    return [event.message for event in heard if isinstance(event, Warned)]


def trains(wrapped):
    first = wrapped(*BATCH)[1]
    for _ in range(5):
        last = wrapped(*BATCH)[1]
    return last < first


def test_without_a_writable_cache_training_stays_in_the_graph_tier_and_warns(tmp_path):
    wrapped, heard = trainer("/proc/nowhere")
    assert trains(wrapped)
    assert any(
        "stays on the graph tier: Compiled code cannot be kept in /proc/nowhere" in text for text in warnings(heard)
    )
    with pytest.raises(OptionError, match="cannot be kept in"):
        trainer("/proc/nowhere", tier="compiled")[0](*BATCH)


def test_a_read_only_cache_is_used_and_nothing_is_compiled(tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o500)
    if os.access(cache, os.W_OK):
        pytest.skip("root writes everywhere")
    wrapped, heard = trainer(cache)
    assert trains(wrapped)
    assert wrapped._executor.session.ascent._process is None
    (warning,) = warnings(heard)
    assert "stays on the graph tier: no compiler could be started" in warning
    assert str(cache) in warning
    with pytest.raises(OptionError, match="could not be compiled: see the warning above"):
        trainer(cache, tier="compiled")[0](*BATCH)


def test_without_disk_space_training_stays_in_the_graph_tier_and_warns(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    wrapped, heard = trainer(tmp_path / "cache")
    assert trains(wrapped)
    assert any("stays on the graph tier: no compiler could be started" in text for text in warnings(heard))
    wrapped.destroy()


@pytest.mark.parametrize(("name", "value"), [("SIZE", "ten"), ("AGE", "90")])
def test_an_invalid_cache_limit_is_named(tmp_path, monkeypatch, name, value):
    monkeypatch.setenv(f"PILOTAGE_CACHE_{name}", value)
    wrapped, heard = trainer(tmp_path)
    assert trains(wrapped)
    assert any(f"PILOTAGE_CACHE_{name} is '{value}'. Write a" in text for text in warnings(heard))


def place(wrapped, library=b"not a library"):
    """Add a valid, sealed entry with a library that cannot be loaded."""
    ascent = wrapped._executor.session.ascent
    facts = {"kernels": ["kernel"], "cpp": {"kernel": "0.so"}, "cuda": {}, "arguments": [], "written": [], "outputs": 1}
    with ascent.cache.building(ascent.fingerprint) as folder:
        (folder / "train").mkdir()
        (folder / "train" / "code.json").write_text(json.dumps(facts))
        (folder / "train" / "wrapper.py").write_text("def call(args): return args")
        (folder / "train" / "0.so").write_bytes(library)
        write_manifest(folder, ascent.fingerprint, Tuning(tier=Tier.COMPILED))
    return ascent.cache.folder(ascent.fingerprint)


def test_code_that_the_loader_refuses_is_compiled_again(tmp_path):
    # As if system libraries had changed: the file is intact, but can no longer be loaded.
    first, _ = trainer(tmp_path)
    first(*BATCH)
    folder = place(first)
    first.destroy()
    second, heard = trainer(tmp_path)
    assert trains(second)
    second.destroy()
    (warning,) = warnings(heard)
    assert f"The compiled code in {folder} cannot be loaded" in warning
    assert "It is compiled again" in warning
    assert not folder.exists()


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["gone", "cut", "unloadable"])
def test_a_program_stays_in_the_graph_tier_if_its_compiled_code_cannot_be_used(tmp_path, damage):
    wrapped, heard = trainer(tmp_path)
    wrapped(*BATCH)
    # The compiler finds the entry, and ends.
    folder = place(wrapped)
    wrapped._executor.session.ascent._process.wait()
    if damage == "gone":
        shutil.rmtree(folder)
    if damage == "cut":
        os.truncate(folder / "train" / "0.so", 3)
    assert trains(wrapped)
    assert wrapped.record.latest_tier == "graph"
    (warning,) = warnings(heard)
    assert "The program stays on the graph tier" in warning
    assert {"gone": "has disappeared from", "cut": "0.so is not what was written", "unloadable": "cannot be loaded"}[
        damage
    ] in warning


@pytest.mark.timeout(60)
def test_a_fifo_instead_of_the_thread_counts_does_not_block(tmp_path):
    wrapped, _ = trainer(tmp_path)
    wrapped(*BATCH)
    note = NativeCache(tmp_path).store.threads_file(wrapped._executor.session.ascent.fingerprint.digest)
    wrapped.destroy()
    note.unlink(missing_ok=True)
    os.mkfifo(note)
    again, _ = trainer(tmp_path)
    assert trains(again)
    again.destroy()


def test_leftovers_of_a_killed_run_are_removed_and_running_builds_stay(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    dead = tmp_path / "pilotage-compiling-dead"
    dead.mkdir()
    (dead / "job").write_text("")
    with BuildFolder.new(tmp_path, "pilotage-compiling-") as living:
        wrapped, _ = trainer(tmp_path / "cache")
        wrapped(*BATCH)
        left = set(tmp_path.glob("pilotage-compiling-*"))
        assert dead not in left
        assert living.path in left
        assert len(left) == 2
        wrapped.destroy()
        assert set(tmp_path.glob("pilotage-compiling-*")) == {living.path}
