"""From the graph to compiled code while the program runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import pilotage
from pilotage.devices.registry import choose
from pilotage.errors import OptionError
from pilotage.events import Noted, TierChanged
from pilotage.options.choices import NonFiniteLoss, Tier
from pilotage.options.execution import Execution
from pilotage.runtime.tiers.ascent import Ascent
from pilotage.runtime.tiers.policy import CompilePolicy, compile_policy


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
    return model, wrapped, heard


BATCH = torch.randn(4, 8, generator=torch.Generator().manual_seed(1)), torch.ones(4, 1)


def said(heard):
    return [getattr(event, "message", "") for event in heard]


def changes(heard):
    return [event.reason.partition(" (")[0] for event in heard if isinstance(event, TierChanged)]


def until_over(wrapped):
    """Train beside the compiler, then wait for it and train on until its result is there."""
    for _ in range(50):
        wrapped(*BATCH)
    while (ascent := wrapped._executor.session.ascent) is not None and (process := ascent._process) is not None:
        # Training all the time would take a core from the compiler.
        process.wait()
        wrapped(*BATCH)
    return wrapped.record


@pytest.mark.slow
def test_the_first_step_does_not_wait_for_the_compiler_and_a_later_one_switches(tmp_path):
    plain_model, plain, _ = trainer(None, tier="graph")
    model, wrapped, heard = trainer(tmp_path)
    wrapped(*BATCH)
    assert wrapped.record.latest_tier == "graph"
    assert wrapped._executor.session.ascent.is_compiling
    record = until_over(wrapped)
    assert any("cache is empty" in message for message in said(heard))
    (entry,) = [path for path in tmp_path.iterdir() if path.is_dir()]
    assert (entry / "manifest.json").exists()
    for _ in range(record.calls):
        plain(*BATCH)
    assert torch.allclose(model[0].weight, plain_model[0].weight, rtol=1e-4, atol=1e-6)

    # The next model finds it at once, or knows that it does not help.
    _, again, heard = trainer(tmp_path, tier="compiled")
    again(*BATCH)
    assert again.record.latest_tier == "compiled"


@pytest.mark.slow
def test_compiled_code_is_reused_and_compiled_again_if_damaged(tmp_path):
    _, first, heard = trainer(tmp_path, tier="compiled")
    first(*BATCH)
    assert changes(heard) == ["compiled"]
    _, again, heard = trainer(tmp_path, tier="compiled")
    again(*BATCH)
    assert changes(heard) == ["found in the cache"]
    library = next(tmp_path.rglob("*.so"))
    content = library.read_bytes()
    # A new file: the first model still runs the old one.
    library.unlink()
    library.write_bytes(content[:100])
    _, second, heard = trainer(tmp_path, tier="compiled")
    second(*BATCH)
    assert second.record.latest_tier == "compiled"
    assert any("damaged" in message and "compiled again" in message for message in said(heard))
    assert changes(heard) == ["compiled"]


def test_a_pinned_tier_stays(tmp_path):
    _, wrapped, _ = trainer(tmp_path, tier="graph")
    wrapped(*BATCH)
    assert wrapped._executor.session.ascent is None
    assert list(tmp_path.iterdir()) == []


def test_without_a_compiler_training_stays_in_the_graph_tier_and_warns(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    _, wrapped, heard = trainer(tmp_path)
    wrapped(*BATCH)
    assert wrapped._executor.session.ascent is None
    (note,) = (event for event in heard if isinstance(event, Noted))
    assert "no C++ compiler (no-such-compiler)" in note.message
    assert note.can_be_changed
    _, pinned, _ = trainer(tmp_path, tier="compiled")
    with pytest.raises(OptionError, match="no-such-compiler"):
        pinned(*BATCH)


def test_a_cache_that_others_can_write_to_is_not_used(tmp_path):
    tmp_path.chmod(0o777)
    _, wrapped, heard = trainer(tmp_path)
    wrapped(*BATCH)
    assert wrapped._executor.session.ascent is None
    assert any("can be written to by others" in message for message in said(heard))


def test_destroying_the_model_ends_the_compiler(tmp_path):
    _, wrapped, _ = trainer(tmp_path)
    wrapped(*BATCH)
    ascent: Ascent = wrapped._executor.session.ascent
    process = ascent._process._process
    assert process.poll() is None
    wrapped.destroy()
    assert process.poll() is not None


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_compiler_ends_with_the_run_however_it_ends(tmp_path, ends, ending):
    program = f"""
import sys, time
sys.path[:0] = {sys.path!r}
import torch
from torch import nn
import pilotage
model = nn.Linear(8, 1)
wrapped = pilotage.training(model, torch.optim.SGD(model.parameters(), lr=0.1), loss=nn.MSELoss(), backend="cpu",
                            cache_directory={str(tmp_path / "cache")!r})
wrapped(torch.randn(4, 8), torch.ones(4, 1))
print(wrapped._executor.session.ascent._process._process.pid, flush=True)
while True:
    wrapped(torch.randn(4, 8), torch.ones(4, 1))
"""
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as run:
        compiler = int(run.stdout.readline())
        run.send_signal(ending)
        run.wait(timeout=200)
    assert ends(compiler)
    assert not list(tmp_path.glob("pilotage-compiling-*"))


@pytest.mark.long
def test_processes_that_share_a_cache_compile_once(tmp_path):
    program = f"""
import sys
sys.path[:0] = {sys.path!r}
import torch
from torch import nn
import pilotage
torch.manual_seed(0)
model = nn.Linear(8, 1)
wrapped = pilotage.training(model, torch.optim.SGD(model.parameters(), lr=0.1), loss=nn.MSELoss(), backend="cpu",
                            tier="compiled", cache_directory={str(tmp_path)!r})
wrapped(torch.randn(4, 8), torch.ones(4, 1))
print(wrapped.record.latest_tier)
"""
    runs = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for _ in range(3)
    ]
    assert [run.communicate()[0].strip() for run in runs] == ["compiled"] * 3
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 1


class Choosing:
    """The attributes of a strategy that the policy reads."""

    def __init__(self, *, needs_graph="", checks_loss=True):
        self.needs_graph = needs_graph
        self.program = SimpleNamespace(checks_loss=checks_loss)


def policy(tier=None, *, strategy=None, has_peers=False, **settings):
    return compile_policy(choose("cpu", tier), Execution(**settings), strategy or Choosing(), has_peers=has_peers)


def test_a_program_is_compiled_at_once_if_the_tier_is_pinned_and_later_otherwise(tmp_path):
    assert policy(Tier.COMPILED).is_required
    assert policy() == CompilePolicy(is_required=False, after_seconds=60.0)
    assert policy(cache_directory=tmp_path) == CompilePolicy(is_required=False, after_seconds=0.0)


def test_instances_switch_together_unless_the_tier_is_pinned():
    assert policy(has_peers=True) == CompilePolicy(is_required=False, after_seconds=60.0, with_others=True)
    assert policy(Tier.COMPILED, has_peers=True) == CompilePolicy(is_required=True, after_seconds=60.0)


def test_some_programs_are_never_compiled(tmp_path):
    assert policy(Tier.GRAPH) is None
    assert policy(Tier.EAGER) is None
    assert policy(strategy=Choosing(needs_graph="it has wheels")) is None
    assert policy(nonfinite_loss=NonFiniteLoss.RAISE) is None
    assert policy(nonfinite_loss=NonFiniteLoss.RAISE, strategy=Choosing(checks_loss=False)) is not None
    with pytest.raises(OptionError, match="cannot stop in a step"):
        policy(Tier.COMPILED, nonfinite_loss=NonFiniteLoss.RAISE)
    with pytest.raises(OptionError, match="cannot run compiled code: it has wheels"):
        policy(Tier.COMPILED, strategy=Choosing(needs_graph="it has wheels"))
