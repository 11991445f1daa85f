"""Several stages of one process switch to compiled code together; real compilers are in tests/pilotage/strategies."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pilotage.compiler.packed_code import PackedCode
from pilotage.compiler.tuning import Tuning
from pilotage.errors import OptionError
from pilotage.options.choices import Tier
from pilotage.runtime.tiers.policy import CompilePolicy
from pilotage.runtime.tiers.stages import StageAscents, StageEntries


def entry(name, tier=Tier.COMPILED, **tuning):
    code = (lambda device: name) if tier is Tier.COMPILED else None
    files = {"manifest.json": name.encode(), "forward/wrapper.py": b"code"}
    return SimpleNamespace(
        digest=name, codes=[code], tuning=Tuning(tier=tier, **tuning), files=lambda: files, sealed=None
    )


class Rising:
    """The ascent of one stage, without a compiler."""

    def __init__(self, name, *, cached=False, problem=""):
        self.name, self.problem, self.looks = name, problem, 0
        self.fingerprint = SimpleNamespace(digest=f"program of {name}")
        self.ready = entry(name) if cached else None
        self.obstacle, self.is_over, self.is_compiling, self.cores = "", False, False, 2
        self.threads_file, self.is_stopped, self.taken = f"{name}.threads", False, None

    def first_entry(self, sample, buffers, code):
        if self.problem:
            raise OptionError(self.problem)
        return

    def is_due(self, seconds):
        return True

    def advance(self, sample, buffers):
        self.looks += 1
        self.is_compiling = self.looks == 1
        if self.looks == 2:
            self.is_over, self.obstacle = True, self.problem
            self.ready = None if self.problem else entry(self.name)

    def take(self, code):
        self.taken = code
        self.ready = entry(code.files["manifest.json"].decode())

    def stop(self):
        self.is_stopped = self.is_over = True
        self.is_compiling = False


def ascents(*stages, policy=None, numbers=None):
    heard = []
    policy = policy or CompilePolicy(False, 0.0)
    of_stages = dict(zip(numbers or range(len(stages)), stages, strict=True))
    return StageAscents(of_stages, 3, policy, heard.append), heard


def test_stages_are_compiled_one_after_the_other_and_used_together():
    first, last = Rising("first"), Rising("last")
    all_of_them, heard = ascents(first, last)
    found = []
    while not found:
        assert all_of_them.is_due(0.1)
        assert not (first.is_compiling and last.is_compiling)
        found += [each for each in [all_of_them.advance(dict, dict)] if each is not None]
    assert (first.looks, last.looks) == (2, 2)
    assert [code and code(None) for code in found[0].codes] == ["first", "last", None]
    assert all_of_them.is_over
    assert not all_of_them.is_due(0.1)
    assert heard == []


def test_code_in_the_cache_is_not_compiled_again():
    all_of_them, _ = ascents(Rising("first", cached=True), Rising("last"))
    assert all_of_them.first_entry(dict, dict, None) is None
    assert all_of_them.advance(dict, dict) is None
    assert all_of_them.advance(dict, dict).digest
    complete, _ = ascents(Rising("first", cached=True), Rising("last", cached=True), numbers=(0, 2))
    found, origin = complete.first_entry(dict, dict, None)
    assert origin == "found in the cache"
    assert [code is not None for code in found.codes] == [True, False, True]


def test_compiling_begins_after_the_work_that_the_policy_asks_for():
    all_of_them, _ = ascents(Rising("first"), policy=CompilePolicy(False, 1.0))
    assert [all_of_them.is_due(0.4) for _ in range(4)] == [False, False, True, True]


def test_if_a_stage_cannot_be_compiled_none_switches_and_the_log_says_which():
    all_of_them, heard = ascents(first := Rising("first"), Rising("last", problem="no space"))
    assert [all_of_them.advance(dict, dict) for _ in range(4)] == [None] * 4
    assert all_of_them.is_over
    assert all_of_them.obstacle == "stage 1: no space"
    assert first.is_stopped
    assert not all_of_them.is_due(0.1)
    assert [event.message for event in heard] == ["All stages stay on the graph tier: stage 1: no space."]


def test_an_error_before_the_first_call_names_its_stage():
    pinned = CompilePolicy(True, 0.0)
    all_of_them, _ = ascents(Rising("last", problem="no space"), policy=pinned, numbers=[2])
    with pytest.raises(OptionError, match="Stage 2: no space"):
        all_of_them.first_entry(dict, dict, None)


def test_code_waits_for_other_instances_and_may_be_replaced_by_theirs():
    stages = Rising("first"), Rising("last")
    all_of_them, _ = ascents(*stages, policy=CompilePolicy(False, 0.0, with_others=True))
    assert [all_of_them.advance(dict, dict) for _ in range(4)] == [None] * 4
    assert not all_of_them.is_due(0.1)
    own = all_of_them.ready
    theirs = StageEntries({0: entry("other first"), 1: entry("other last")}, 2)
    all_of_them.take(PackedCode(theirs.files()))
    assert [each.taken.files.keys() for each in stages] == [{"manifest.json", "forward/wrapper.py"}] * 2
    assert all_of_them.ready.digest == theirs.digest != own.digest


def test_the_fingerprint_is_that_of_all_stages():
    one, _ = ascents(Rising("first"), Rising("last"))
    other, _ = ascents(Rising("first"), Rising("another"))
    assert one.fingerprint.digest != other.fingerprint.digest


def test_the_report_names_each_stage_and_those_that_stay_on_their_graphs():
    found = StageEntries(
        {
            0: entry("first", seconds={"graph": 0.002, "compiled": 0.001}),
            2: entry("last", Tier.GRAPH, seconds={"graph": 0.001, "compiled": 0.003}),
        },
        3,
    )
    assert found.tuning.tier is Tier.COMPILED
    assert found.tuning.gain == (
        "stage 0 graph 2.000 ms, stage 0 compiled 1.000 ms, stage 2 graph 1.000 ms, stage 2 compiled 3.000 ms; "
        "stage 2 on the graph, which is faster there"
    )
    assert StageEntries({0: entry("first", Tier.GRAPH)}, 1).tuning.tier is Tier.GRAPH
