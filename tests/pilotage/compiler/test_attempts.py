"""Compilation is tried again without the changes that fail."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from pilotage.compiler import attempts
from pilotage.compiler.attempts import Compiled, compile_without_failing_changes
from pilotage.compiler.changes import ChangeFailed
from pilotage.compiler.wrapper import NotSelfContained

ALL = ["first", "second", "third"]

INJECTED = """
import sys
from pathlib import Path
from types import SimpleNamespace

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from pilotage.compiler.attempts import compile_without_failing_changes
from pilotage.compiler.code import NativeCode
from pilotage.compiler.rewrites import for_card

def raising(graph, device):
    assert graph is None

def misleading(graph, device):
    # Well-formed for FX, but Inductor cannot lower it.
    for node in graph.graph.nodes:
        if node.target is torch.ops.aten.tanh.default:
            node.args = (node.args[0], "wrong")
            return

fault = {"raising": raising, "misleading": misleading}[sys.argv[1]]
for_card.REWRITES["masks of ReLU"] = fault

def count(first, second, values):
    first.add_(1)
    second.add_(1)
    return [values.tanh() + 1]

arguments = [torch.tensor(1), torch.tensor(2), torch.randn(50)]
graph = make_fx(count)(*[each.clone() for each in arguments])
folder = Path(sys.argv[2])
done = compile_without_failing_changes(graph, arguments, folder, torch.device("cuda"))
expected, found = ([each.clone() for each in arguments] for _ in range(2))
torch.testing.assert_close(NativeCode(folder, torch.device("cpu"))(*found), graph(*expected))
torch.testing.assert_close(found, expected)
print(*done.made, sep=", ")
print(*done.dropped, sep="\\n")
"""


class Compiler:
    """Stands for Inductor: fails if a change with a fault is made."""

    def __init__(self, faults=(), *, raising=(), error=None):
        self.faults, self.raising, self.error = {*faults}, {*raising}, error or RuntimeError("cannot be lowered")
        self.attempts = []

    def __call__(self, graph, arguments, folder, device, changes):
        self.attempts.append([name for name in ALL if name not in changes.without])
        self.was_cautious = changes.is_cautious
        folder.mkdir()
        (folder / "made").write_text(" ".join(self.attempts[-1]))
        for name in self.attempts[-1]:
            if name in self.raising:
                raise ChangeFailed(name) from ValueError("fault in the change")
            changes.made.append(name)
        if self.faults & {*changes.made}:
            raise self.error


@pytest.fixture
def compiled(monkeypatch, tmp_path):
    def run(compiler, without=()):
        monkeypatch.setattr(attempts, "compile_graph", compiler)
        done = compile_without_failing_changes(None, [], tmp_path / "code", torch.device("cpu"), without)
        assert [each.name for each in tmp_path.iterdir()] == ["code"]
        assert (tmp_path / "code" / "made").read_text().split() == [*done.made]
        return done

    return run


def test_nothing_is_dropped_if_everything_works(compiled):
    assert compiled(Compiler()) == Compiled(tuple(ALL))


def test_a_change_that_the_compiler_cannot_digest_is_dropped_on_its_own(compiled):
    compiler = Compiler(["second"])
    assert compiled(compiler) == Compiled(
        ("first", "third"), ("The change 'second' is left out: RuntimeError: cannot be lowered",)
    )
    assert compiler.attempts == [ALL, [], ["second", "third"], ["first", "third"]]


def test_a_change_that_raises_is_dropped_at_once(compiled):
    compiler = Compiler(raising=["second"])
    assert compiled(compiler) == Compiled(
        ("first", "third"), ("The change 'second' is left out: ValueError: fault in the change",)
    )
    assert compiler.attempts == [ALL, ["first", "third"]]


def test_if_no_single_change_is_to_blame_all_are_dropped(compiled):
    compiler = Compiler(["first", "third"])
    found = compiled(compiler)
    assert found.made == ()
    assert found.dropped == ("The changes first, second, third are left out: RuntimeError: cannot be lowered",)
    assert compiler.attempts == [ALL, [], ["second", "third"], ["first", "third"], ["first", "second"]]
    assert not compiler.was_cautious


def test_an_error_of_inductors_own_optimizations_is_avoided_in_the_last_attempt(compiled):
    class Careless(Compiler):
        def __call__(self, graph, arguments, folder, device, changes):
            super().__call__(graph, arguments, folder, device, changes)
            if not changes.is_cautious:
                raise RuntimeError("bad fusion")

    compiler = Careless()
    (line,) = compiled(compiler).dropped
    assert line.startswith("The changes first, second, third and some optimizations of Inductor are left out: ")
    assert compiler.was_cautious
    assert len(compiler.attempts) == 3


def test_two_kinds_of_faults_are_both_named(compiled):
    found = compiled(Compiler(["first"], raising=["third"]))
    assert found.made == ("second",)
    assert [line.partition(" is left out")[0] for line in found.dropped] == ["The change 'third'", "The change 'first'"]


def test_an_error_that_remains_without_changes_is_inductors_own(compiled):
    class Failing(Compiler):
        def __call__(self, graph, arguments, folder, device, changes):
            super().__call__(graph, arguments, folder, device, changes)
            raise RuntimeError(f"with {len(changes.made)} changes{', cautiously' * changes.is_cautious}")

    compiler = Failing()
    with pytest.raises(RuntimeError, match=r"^with 0 changes$"):
        compiled(compiler)
    assert len(compiler.attempts) == 3


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("full"), NotSelfContained("calls Inductor")])
def test_errors_that_no_change_causes_are_not_tried_again(compiled, error):
    compiler = Compiler(["second"], error=error)
    with pytest.raises(type(error)):
        compiled(compiler)
    assert len(compiler.attempts) == 1


def test_excluded_changes_stay_excluded(compiled):
    compiler = Compiler(["second"])
    assert compiled(compiler, without=["first"]).made == ("third",)
    assert all("first" not in attempt for attempt in compiler.attempts)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["raising", pytest.param("misleading", marks=pytest.mark.long)])
def test_a_failing_rewrite_is_left_out_and_the_others_stay(tmp_path, fault):
    done = subprocess.run(
        [sys.executable, "-c", INJECTED, fault, str(tmp_path / "code")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    made, *dropped = done.stdout.splitlines()
    assert "batch counters" in made
    assert "masks of ReLU" not in made
    (line,) = dropped
    assert line.startswith("The change 'masks of ReLU' is left out: ")
    assert "AssertionError, raised in" in line if fault == "raising" else "aten.tanh" in line
