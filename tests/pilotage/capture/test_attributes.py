"""Plain attributes that forward changes: an error if state would be lost, a warning if a value is frozen."""

from __future__ import annotations

import collections
import logging
import re
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.errors import CaptureError

BATCH = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))


class Network(nn.Module):
    def __init__(self, **attributes) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)
        for name, value in attributes.items():
            setattr(self, name, value)

    def touch(self, x):
        """An additional action of forward."""

    def forward(self, x):
        extra = self.touch(x)
        return functional.mse_loss(self.layer(x) + (0 if extra is None else extra), torch.zeros(x.shape[0], 3))


class Holder:
    """A user object."""

    def __init__(self, **held) -> None:
        self.__dict__.update(held)


def train(module, *listeners, steps=1, **options):
    step = pilotage.training(module, torch.optim.SGD(module.parameters(), lr=0.1), listeners=listeners, **options)
    return [step(BATCH).item() for _ in range(steps)]


def module_with(touch, **attributes):
    return type("Touching", (Network,), {"touch": touch})(**attributes)


def set_to(name, value):
    return lambda self, x: setattr(self, name, value(self, x))


LOST = {
    "a tensor changed in place": (lambda self, x: self.count.add_(1), {"count": torch.zeros(3)}),
    "a tensor changed in place through a view": (lambda self, x: self.count[:1].add_(1), {"count": torch.zeros(3)}),
    "a tensor in a list changed in place": (lambda self, x: self.count[0].add_(1), {"count": [torch.zeros(3)]}),
    "a tensor in a dictionary in a list": (
        lambda self, x: self.count[0]["n"].add_(1),
        {"count": [{"n": torch.zeros(3)}]},
    ),
    "a tensor in an object of the user's": (lambda self, x: self.count.n.add_(1), {"count": Holder(n=torch.zeros(3))}),
    "a tensor replaced by itself and more": (
        set_to("count", lambda self, x: self.count + 1),
        {"count": torch.zeros(3)},
    ),
    "a tensor replaced by an input": (set_to("count", lambda self, x: x.mean()), {"count": torch.zeros(3)}),
    "nothing replaced by an input": (set_to("count", lambda self, x: x.mean()), {"count": None}),
    "nothing replaced by a weight": (set_to("count", lambda self, x: self.layer.weight.sum()), {"count": None}),
    "nothing replaced by random numbers": (set_to("count", lambda self, x: torch.rand(3)), {"count": None}),
}


@pytest.mark.parametrize("case", LOST)
def test_state_that_would_be_lost_is_refused_by_name_and_unchanged(case, fake_tensors, assert_equal):
    touch, attributes = LOST[case]
    module = module_with(touch, **attributes)
    before = dict(vars(module))
    with pytest.raises(CaptureError, match=r"attribute 'count' of Touching.*register_buffer\('count'"):
        train(module)
    assert dict(vars(module)) == before
    assert fake_tensors(module) == []
    held = attributes.get("count")
    while isinstance(held, (list, dict, Holder)):
        held = vars(held)["n"] if isinstance(held, Holder) else held[0] if isinstance(held, list) else held["n"]
    if held is not None:
        assert_equal(held, torch.zeros(3))


@pytest.mark.parametrize("convert", [lambda mask: mask.to(torch.float64), lambda mask: mask.clone().detach().half()])
def test_a_tensor_attribute_may_be_converted_in_place_of_itself(convert, fake_tensors, warned):
    def touch(self, x):
        self.mask = convert(self.mask)
        return self.mask.float()

    module = module_with(touch, mask=torch.arange(3.0))
    expected = functional.mse_loss(module.layer(BATCH) + torch.arange(3.0), torch.zeros(5, 3)).item()
    assert train(module, warned) == pytest.approx([expected])
    assert warned.messages == []
    assert module.mask.dtype == torch.float32
    assert fake_tensors(module) == []


def test_the_line_that_writes_is_named(line_of):
    class Writing(Network):
        def touch(self, x):
            self.count.add_(1)  # writing

    with pytest.raises(CaptureError, match=re.escape(f"at {line_of('writing')} in touch: self.count.add_(1)")):
        train(Writing(count=torch.zeros(3)))


def test_an_input_kept_in_a_torch_module_is_reported(fake_tensors, warned):
    module = module_with(lambda self, x: setattr(self.layer, "last", x))
    train(module, warned)
    assert "'layer.last' of Linear" in warned.messages[0]
    assert not hasattr(module.layer, "last")
    assert fake_tensors(module) == []


def test_forward_may_set_attributes_that_it_reads_itself(twins, assert_same_state, fake_tensors, warned):
    class Noting(Network):
        def touch(self, x):
            self.features = self.layer(x).relu()
            self.twice = self.features * 2
            return self.twice

    mine, theirs = twins(Noting)
    train(mine, warned, steps=3)
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        theirs(BATCH).backward()
        optimizer.step()
    assert_same_state(mine, theirs)
    assert not hasattr(mine, "features")
    assert fake_tensors(mine) == []
    assert "'features' of Noting" in warned.messages[0]
    assert "Return the tensor from forward" in warned.messages[1]


def test_the_same_state_in_a_buffer_trains(twins, assert_same_state):
    class Counting(Network):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(3))

        def touch(self, x):
            self.count.add_(1)
            return self.count

    mine, theirs = twins(Counting)
    train(mine, steps=3)
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        theirs(BATCH).backward()
        optimizer.step()
    assert_same_state(mine, theirs)


FROZEN = {
    "a counter": (set_to("count", lambda self, x: self.count + 1), 0, 1),
    "a flag": (set_to("count", lambda self, x: True), False, True),
    "a list of numbers": (lambda self, x: self.count.append(x.shape[0]), [], [5]),
    "a dictionary of numbers": (lambda self, x: self.count.update(n=1), {}, {"n": 1}),
    "a list in a dictionary": (lambda self, x: self.count["n"].append(1), {"n": []}, {"n": [1]}),
    "a deque": (lambda self, x: self.count.append(1), collections.deque(maxlen=2), collections.deque([1])),
}


@pytest.mark.parametrize("case", FROZEN)
def test_a_value_that_python_changed_stays_changed_with_a_warning(case, warned):
    touch, before, after = FROZEN[case]
    module = module_with(touch, count=before)
    train(module, warned, steps=3)
    assert module.count == after
    assert len(warned.messages) == 1
    assert "attribute 'count' of Touching" in warned.messages[0]
    assert "runs once" in warned.messages[0]


def test_a_counter_in_a_user_object_is_reported(warned):
    module = module_with(lambda self, x: setattr(self.state, "n", self.state.n + 1), state=Holder(n=0))
    train(module, warned, steps=2)
    assert module.state.n == 1
    assert "'state'" in warned.messages[0]


def test_one_entry_of_a_shared_object_is_reported_once_and_by_its_name(warned):
    # As Hugging Face's models do: every part has the same configuration, and forward notes the kind of problem in it.
    shared = Holder(kind=None, text="long " * 20)
    module = module_with(lambda self, x: setattr(self.config, "kind", "labels"), config=shared, again=shared)
    train(module, warned, steps=2)
    assert len(warned.messages) == 1
    assert "at .kind from None to 'labels'" in warned.messages[0]


def test_a_branch_on_a_counter_is_fixed_with_a_warning(warned):
    def touch(self, x):
        self.calls += 1
        return 100.0 if self.calls > 1 else None

    losses = train(module_with(touch, calls=0), warned, steps=3)
    assert max(losses) < 50
    assert "a branch on it always goes the same way" in warned.messages[0]


TENSORS_KEPT = {
    "a list": (lambda self, x: self.kept.append(x), [], []),
    "a list in a dictionary": (lambda self, x: self.kept["a"].append(x), {"a": []}, {"a": []}),
    "a dictionary": (lambda self, x: self.kept.update(x=x), {"y": 1}, {"y": 1}),
    "a tuple": (set_to("kept", lambda self, x: (x, 1)), (None, 1), (None, 1)),
    "a namespace": (lambda self, x: setattr(self.kept, "x", x), SimpleNamespace(n=1), SimpleNamespace(n=1)),
}


@pytest.mark.parametrize("case", TENSORS_KEPT)
def test_fake_tensors_are_removed_from_containers(case, warned, fake_tensors):
    touch, before, after = TENSORS_KEPT[case]
    module = module_with(touch, kept=before)
    train(module, warned, steps=2)
    assert module.kept == after
    assert module.kept is before
    assert fake_tensors(module) == []
    assert "'kept'" in warned.messages[0]


def test_a_tensor_computed_from_constants_is_a_cache_and_is_computed_by_the_program(warned, twins, assert_equal):
    def touch(self, x):
        if self.mask is None:
            self.mask = torch.arange(3.0) * 2
        return self.mask

    mine, theirs = twins(lambda: module_with(touch, mask=None))
    losses = train(mine, warned, steps=2)
    assert mine.mask is None
    assert "'mask'" in warned.messages[0]
    assert losses[0] == theirs(BATCH).item()


def test_unchanged_attributes_give_no_warning(warned):
    attributes = {
        "numbers": [1, 2],
        "tensors": [torch.ones(3)],
        "table": torch.ones(3),
        "log": logging.getLogger("tests"),
        "holder": Holder(x=torch.ones(1)),
        "loop": [],
    }
    attributes["loop"].append(attributes["loop"])

    def touch(self, x):
        self.log.debug("quiet")
        return self.table + self.tensors[0]

    train(module_with(touch, **attributes), warned, steps=2)
    assert warned.messages == []


def test_the_eager_tier_keeps_counting_in_python(warned):
    module = module_with(set_to("count", lambda self, x: self.count + 1), count=0)
    train(module, warned, steps=3, tier="eager")
    assert module.count == 3
    assert warned.messages == []
