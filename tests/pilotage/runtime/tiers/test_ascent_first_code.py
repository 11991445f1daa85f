"""The first code of a compiler is used while it looks for a faster way."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from pilotage.compiler.tuning import Tuning
from pilotage.events import Warned
from pilotage.options.choices import Tier
from pilotage.runtime.tiers.ascent import Ascent
from pilotage.runtime.tiers.policy import CompilePolicy


class Compiler:
    """A compiling process that never ends by itself."""

    is_running = True
    error = None

    def problem(self):
        return self.error

    def stop(self):
        self.is_running = False


class Cache:
    """Has one entry, or none."""

    def __init__(self, place: Path):
        self.place, self.entry = place, None

    def publish(self, digest):
        self.place.mkdir(exist_ok=True)
        self.entry = SimpleNamespace(digest=digest, tuning=Tuning(tier=Tier.COMPILED), code=lambda *_: {})

    def folder(self, _):
        return self.place

    def find(self, _):
        return self.entry


@pytest.fixture
def rising(tmp_path):
    def make(*, with_others=False, tell=lambda _: None):
        ascent = Ascent(
            program=SimpleNamespace(computations={}),
            fingerprint=SimpleNamespace(digest="p"),
            cache=Cache(tmp_path / "entry"),
            device=torch.device("cpu"),
            schedule=None,
            policy=CompilePolicy(False, 0.0, with_others),
            tell=tell,
        )
        ascent._process = Compiler()
        return ascent

    return make


def look(ascent):
    return ascent.advance(dict, dict)


def test_first_code_is_used_while_the_compiler_continues_and_better_code_at_its_end(rising):
    ascent = rising()
    assert look(ascent) is None
    ascent.cache.publish("first")
    assert look(ascent).digest == "first"
    assert ascent.is_compiling
    assert look(ascent) is None
    ascent.cache.publish("better")
    ascent._process.is_running = False
    assert look(ascent).digest == "better"
    assert ascent.is_over


def test_first_code_that_stays_the_best_is_not_used_twice(rising):
    ascent = rising()
    ascent.cache.publish("first")
    assert look(ascent).digest == "first"
    ascent._process.is_running = False
    assert look(ascent) is None
    assert ascent.is_over


def test_instances_wait_for_the_best_code(rising):
    ascent = rising(with_others=True)
    ascent.cache.publish("first")
    assert look(ascent) is None
    assert ascent.ready is None
    ascent._process.is_running = False
    assert look(ascent) is None
    assert ascent.ready.digest == "first"


@pytest.mark.parametrize("with_others", [False, True])
def test_first_code_is_used_if_the_compiler_fails_later(rising, with_others):
    told = []
    ascent = rising(with_others=with_others, tell=told.append)
    ascent.cache.publish("first")
    ascent._process.is_running, ascent._process.error = False, "OutOfMemoryError: too large"
    found = look(ascent)
    assert (ascent.ready if with_others else found).digest == "first"
    assert ascent.obstacle == ""
    assert told[0].message == "The search for faster code has ended: OutOfMemoryError: too large"


def test_without_code_the_program_stays_on_the_graph_if_the_compiler_fails(rising):
    told = []
    ascent = rising(tell=told.append)
    ascent._process.is_running, ascent._process.error = False, "OutOfMemoryError: too large"
    assert look(ascent) is None
    assert ascent.obstacle == "OutOfMemoryError: too large"
    assert [type(each) for each in told] == [Warned]
