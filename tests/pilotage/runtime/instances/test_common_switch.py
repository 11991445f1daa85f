"""When instances switch together; real processes are in tests/pilotage/distributed/test_peers_compiled.py."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pilotage.compiler.packed_code import PackedCode
from pilotage.distributed.same_exchange import BEFORE_COMPILING, WITH_WEIGHTS
from pilotage.errors import DistributedError, OptionError
from pilotage.runtime.instances.common_switch import CommonSwitch
from pilotage.runtime.tiers.ascent import CompilingCalledOffError


class Others:
    """Answers for the other instances: their reports at each meeting, as (seconds, program, code, obstacle)."""

    kind = "Rank"

    def __init__(self, *meetings, rank=0, files=None, one_host=True):
        self.world = SimpleNamespace(rank=rank, stage=None, one_host=one_host)
        self.meetings, self.files, self.told = list(meetings), files, []

    def gather(self, report):
        everyone = list(self.meetings.pop(0))
        if len(report) != 6:  # Not the report of a meeting.
            self.told.append(report)
            everyone.insert(self.world.rank, report)
            return everyone
        *facts, rank, stage = report
        assert (rank, stage) == (self.world.rank, None)
        self.told.append(tuple(facts))
        everyone.insert(rank, facts)
        return [(*each, number, None) for number, each in enumerate(everyone)]

    def wait_for_all(self):
        self.told.append("waits")

    def value_of_first(self, value):
        return value if self.files is None else self.files


class Rising:
    """An ascent without a compiler."""

    def __init__(self, *, ready=None, obstacle="", program="p"):
        self.fingerprint = SimpleNamespace(digest=program)
        self.ready = None if ready is None else SimpleNamespace(digest=ready, files=lambda: {"code": ready.encode()})
        self.obstacle, self.is_stopped, self.taken = obstacle, False, None

    def stop(self):
        self.is_stopped = True

    def take(self, code):
        self.taken = code
        self.ready = SimpleNamespace(digest=code.files["code"].decode())


def switch(*meetings, **settings):
    heard = []
    others = Others(*meetings, **settings)
    return CommonSwitch(others, heard.append), others, heard


READY, WAITING = (0.1, "p", "code", ""), (0.1, "p", "", "")


def calls_until_time(common):
    return next(number for number in range(1, 20_000) if common.is_time())


def test_instances_meet_after_the_first_call_and_switch_once_all_are_ready():
    common, _, heard = switch([WAITING], [READY])
    ascent = Rising(ready="code")
    assert calls_until_time(common) == 1
    assert common.meet(ascent, "", 0.1) is None
    assert calls_until_time(common) == 10
    assert common.meet(ascent, "", 0.1) is ascent.ready
    assert heard == []
    assert not any(common.is_time() for _ in range(50))


@pytest.mark.parametrize(
    ("own", "other", "calls"), [(0.01, 0.25, 4), (0.25, 0.01, 4), (5.0, 0.1, 1), (1e-9, 1e-9, 10_000)]
)
def test_the_slowest_instance_decides_after_how_many_calls_they_meet_again(own, other, calls):
    common, _, _ = switch([(other, "p", "", "")])
    common.is_time()
    common.meet(Rising(), "", own)
    assert calls_until_time(common) == calls


def test_an_instance_that_is_not_ready_keeps_the_others_waiting():
    common, _, _ = switch([READY])
    assert common.meet(Rising(), "", 0.1) is None


def test_if_another_instance_cannot_switch_none_does_and_all_say_why():
    common, _, heard = switch([(0.1, "", "", "it has no compiler")])
    ascent = Rising(ready="code")
    assert common.meet(ascent, "", 0.1) is None
    assert ascent.is_stopped
    assert [event.message for event in heard] == [
        "All instances stay on the graph tier: instance 1 cannot switch to compiled code (it has no compiler)."
    ]
    assert not common.is_time()


def test_an_instance_without_an_ascent_tells_the_others_why():
    common, others, heard = switch([READY])
    assert common.meet(None, "its tier is fixed", 0.1) is None
    assert others.told == [(0.1, "", "", "its tier is fixed")]
    assert heard == []


def test_an_error_of_the_compiler_reaches_the_others():
    common, others, heard = switch([READY])
    assert common.meet(Rising(obstacle="AssertionError"), "", 0.1) is None
    assert others.told[0][3] == "AssertionError"
    assert "instance 0 cannot switch to compiled code (AssertionError)" in heard[0].message


def test_instances_with_different_programs_do_not_switch():
    common, _, heard = switch([(0.1, "another", "", "")])
    assert common.meet(Rising(ready="code"), "", 0.1) is None
    assert "instance 1 has another program, machine or version than instance 0" in heard[0].message


def test_if_code_differs_that_of_instance_0_is_used():
    common, _, _ = switch([READY], [READY], rank=1, files={"code": b"code"})
    ascent = Rising(ready="own code")
    assert common.meet(ascent, "", 0.1) is ascent.ready
    assert ascent.taken == PackedCode({"code": b"code"})
    assert ascent.ready.digest == "code"


def test_instance_0_sends_its_code_and_keeps_it():
    common, _, _ = switch([(0.1, "p", "other code", "")], [READY])
    ascent = Rising(ready="code")
    assert common.meet(ascent, "", 0.1) is ascent.ready
    assert ascent.taken is None


def test_if_an_instance_cannot_use_the_code_of_instance_0_none_switches():
    common, _, heard = switch([(0.1, "p", "other code", "")], [(0.1, "p", "other code", "")])
    assert common.meet(Rising(ready="code"), "", 0.1) is None
    assert "instance 1 cannot use the compiled code of instance 0" in heard[0].message


@pytest.mark.parametrize("rank", [0, 1])
def test_code_never_comes_from_another_host(rank):
    other = (0.1, "p", "other code", "")
    common, others, heard = switch([other], rank=rank, files={"code": b"code"}, one_host=False)
    ascent = Rising(ready="code")
    assert common.meet(ascent, "", 0.1) is None
    assert ascent.taken is None
    assert ascent.is_stopped
    assert len(others.told) == 1
    assert "set PILOTAGE_CACHE_DIR to a directory that all hosts share" in heard[0].message


def test_instances_of_several_hosts_with_equal_code_switch():
    common, _, _ = switch([READY], one_host=False)
    ascent = Rising(ready="code")
    assert common.meet(ascent, "", 0.1) is ascent.ready


def test_instances_that_compile_before_their_first_call_agree_and_never_meet_again():
    common, _, _ = switch([READY], [READY], rank=1, files={"code": b"code"})
    assert common.agree(Rising(ready="own code")).digest == "code"
    assert not any(common.is_time() for _ in range(50))


def test_before_they_agree_instances_wait_for_those_that_compile_for_longer():
    common, others, _ = switch([READY])
    common.agree(Rising(ready="code"))
    assert others.told[0] == "waits"


def test_nothing_is_compiled_before_the_first_call_unless_all_instances_do_that():
    common, others, _ = switch([(BEFORE_COMPILING, {}, "name")], [(WITH_WEIGHTS, {}, "name")])
    common.begin_to_compile()
    waited, (moment, settings, _) = others.told
    assert (waited, moment, settings) == ("waits", BEFORE_COMPILING, {})
    with pytest.raises(DistributedError, match="Rank 1 is about to exchange its weights"):
        common.begin_to_compile()


def test_without_common_code_the_tier_compiled_is_refused():
    common, _, heard = switch([(0.1, "another", "code", "")])
    with pytest.raises(OptionError, match="the instances have no code in common"):
        common.agree(Rising(ready="code"))
    assert "instance 1 has another program" in heard[0].message


def test_if_an_instance_cannot_compile_before_the_first_call_all_raise_its_reason():
    common, _, heard = switch([(0.0, "", "", "no space")])
    with pytest.raises(OptionError, match="All processes stop: instance 1 has no compiled code"):
        common.agree(Rising(ready="code"))
    assert heard == []


def test_the_instance_that_cannot_compile_raises_what_the_others_do():
    common, others, _ = switch([READY], [(0.0, "", "", "no space")], [READY])
    assert str(common.failure(OptionError("no memory"))) == (
        "All processes stop: instance 0 has no compiled code. no memory"
    )
    assert others.told == ["waits", (0.0, "", "", "no memory")]
    called_off = common.failure(CompilingCalledOffError())
    assert str(called_off) == "All processes stop: instance 1 has no compiled code. no space"
    assert "ValueError: text" in str(common.failure(ValueError("text")))


class OtherStages(Others):
    """Answers for the other processes of pipelines: reports with the instance and the stage."""

    def __init__(self, *meetings, stage, rank=0):
        super().__init__(*meetings, rank=rank)
        self.world.stage = stage

    def gather(self, report):
        raise AssertionError("only the processes of one stage would hear this")

    def gather_everywhere(self, report):
        return [report, *self.meetings.pop(0)]


def of_stages(tell, *meetings):
    others = OtherStages(*meetings, stage=0)
    return CommonSwitch(others, tell, gather=others.gather_everywhere)


def test_groups_meet_in_their_order_before_compiling():
    met = []

    class Group:
        kind = "Stage"

        def __init__(self, name, moment=BEFORE_COMPILING):
            self.name, self.moment = name, moment

        def wait_for_all(self):
            met.append(f"{self.name} waits")

        def gather(self, value):
            met.append(self.name)
            return [value, (self.moment, *value[1:])]

    CommonSwitch(Others(), print, groups=[Group("stages"), Group("instances")]).begin_to_compile()
    assert met == ["stages waits", "stages", "instances waits", "instances"]
    late = [Group("stages", WITH_WEIGHTS), Group("instances")]
    with pytest.raises(DistributedError, match="Stage 1 is about to exchange its weights, but this one to compile"):
        CommonSwitch(Others(), print, groups=late).begin_to_compile()


def test_stages_switch_when_all_of_them_are_ready_each_to_its_own_code():
    waiting = [(0.1, "q", "", "", 0, 1), (0.1, "p", "code", "", 1, 0), (0.1, "q", "other", "", 1, 1)]
    ready = [(0.1, "q", "other", "", 0, 1), *waiting[1:]]
    common, ascent = of_stages(print, waiting, ready), Rising(ready="code")
    assert common.meet(ascent, "", 0.1) is None
    assert common.meet(ascent, "", 0.1) is ascent.ready


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ((0.1, "q", "", "no space", 0, 1), "stage 1 of instance 0 cannot switch to compiled code (no space)"),
        ((0.1, "r", "", "", 1, 0), "stage 0 of instance 1 has another program, machine or version than stage 0 of"),
    ],
)
def test_stages_stay_on_the_graph_if_one_of_them_cannot_switch(other, reason):
    heard = []
    common, ascent = of_stages(heard.append, [other]), Rising(ready="code")
    assert common.meet(ascent, "", 0.1) is None
    assert ascent.is_stopped
    (note,) = heard
    assert note.message.startswith(f"All stages stay on the graph tier: {reason}")
    assert not any(common.is_time() for _ in range(50))


def test_the_instances_of_a_stage_take_the_code_of_the_first_one():
    everyone = [(0.1, "q", "other", "", 0, 1), (0.1, "p", "mine", "", 1, 0), (0.1, "q", "other", "", 1, 1)]
    agreed = [everyone[0], (0.1, "p", "code", "", 1, 0), everyone[2]]
    common, ascent = of_stages(print, everyone, agreed), Rising(ready="code")
    assert common.meet(ascent, "", 0.1).digest == "code"
