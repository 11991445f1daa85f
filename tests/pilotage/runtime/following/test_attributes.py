from __future__ import annotations

import numpy
import pytest
import torch
from torch import nn

from pilotage.runtime.following.attributes import Attributes
from pilotage.runtime.following.quick_look import QuickLook

LEVEL = 1
SCALE = 1.0
WEIGHTS = torch.ones(2)
TABLE = {"share": 0.5}
loss = torch.zeros(())
"""The name of an attribute that `Reader` reads, too."""


class Config:
    def __init__(self) -> None:
        self.rate = 0.5


class Part(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.number, self.words, self.table, self.names = 1, ["a"], {"b": 2}, {"c"}
        self.config, self.array, self.tensor = Config(), numpy.zeros(2), torch.zeros(2)
        self.layer = nn.Dropout(0.5)
        factor = 2.0

        def function(x):
            return factor * x

        def set_factor(value):
            nonlocal factor
            factor = value

        self.function, self.setters = function, (set_factor,)

    def forward(self, x):
        return self.function(x) * LEVEL


CHANGES = {
    "number": lambda part: setattr(part, "number", 2),
    "words": lambda part: part.words.append("z"),
    "table": lambda part: part.table.update(b=3),
    "names": lambda part: part.names.add("z"),
    "config": lambda part: setattr(part.config, "rate", 0.1),
    "array": lambda part: setattr(part, "array", numpy.ones(2)),
    "tensor": lambda part: setattr(part, "tensor", torch.ones(2)),
    "layer.p": lambda part: setattr(part.layer, "p", 0.1),
    "factor": lambda part: part.setters[0](3.0),
    "other": lambda part: setattr(part, "other", 1),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_value_that_has_changed_is_named_until_it_is_noted(name):
    part = Part()
    look = QuickLook(part)
    attributes = look.attributes
    assert not look.differs()
    CHANGES[name](part)
    assert look.differs()
    (changed,) = attributes.changed()
    assert changed.name == name
    assert changed.is_new == (name == "other")
    attributes.note()
    assert not look.differs()
    assert list(attributes.changed()) == []


def test_a_global_number_that_forward_reads_is_compared(monkeypatch):
    attributes = Attributes(Part())
    monkeypatch.setitem(globals(), "LEVEL", 7)
    (changed,) = attributes.changed()
    assert (changed.name, changed.owner, changed.text) == ("LEVEL", "Part.forward", "from 1 to 7")


def scaled(x):
    return SCALE * x


class Reader(nn.Module):
    def forward(self, x):
        return sum(TABLE["share"] * scaled(each) * WEIGHTS for each in x.loss)


@pytest.mark.parametrize(
    ("name", "value"), [("WEIGHTS", torch.zeros(2)), ("TABLE", {"share": 0.1}), ("SCALE", 2.0)], ids=str
)
def test_what_functions_and_generators_read_is_compared(monkeypatch, name, value):
    look = QuickLook(Reader())
    assert not look.differs()
    monkeypatch.setitem(globals(), name, value)
    assert look.differs()
    assert [changed.name for changed in look.attributes.changed()] == [name]


def test_a_dictionary_that_is_filled_otherwise_is_a_change(monkeypatch):
    look = QuickLook(Reader())
    monkeypatch.setitem(TABLE, "share", 0.9)
    assert look.differs()
    assert [changed.name for changed in look.attributes.changed()] == ["TABLE"]


def test_a_global_variable_with_the_name_of_an_attribute_is_not_compared(monkeypatch):
    look = QuickLook(Reader())
    monkeypatch.setitem(globals(), "loss", torch.ones(()))
    assert not look.differs()


def test_equal_values_in_other_objects_are_not_a_change():
    part = Part()
    look = QuickLook(part)
    part.number, part.layer.p = 1.0, float("0.5")
    assert not look.differs()


def test_modes_are_distinguished_from_other_values():
    part = Part()
    look = QuickLook(part)
    part.layer.eval()
    assert look.differs()
    assert look.attributes.modes() == ["layer"]
    assert list(look.attributes.changed()) == []


def test_weights_and_hooks_are_not_among_the_values():
    module = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    attributes = Attributes(module)
    with torch.no_grad():
        module[0].weight.mul_(2)
    module(torch.ones(3, 2)).sum().backward()
    module.register_forward_hook(lambda *_: None)
    assert list(attributes.changed()) == []
