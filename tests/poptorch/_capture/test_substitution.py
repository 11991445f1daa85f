import pytest
import torch
from torch import nn
from torch.distributions import Distribution, Normal

from poptorch._capture.substitution import _OverwriteContextManager


class Library:
    """A library with a function that has to be replaced during capture."""

    function = staticmethod(lambda x: x + 1)


class Substitution:
    def replace(self):
        self.before = Library.function
        Library.function = staticmethod(lambda x: x + 10)

    def restore(self):
        Library.function = staticmethod(self.before)


@pytest.fixture(params=[lambda: Substitution, lambda: Substitution()])
def registered(request, monkeypatch):
    monkeypatch.setattr(_OverwriteContextManager, "_registered", [])
    _OverwriteContextManager.registerSubsitutionManager(request.param())


class Model(nn.Module):
    def forward(self, x):
        return Library.function(x)


@pytest.mark.usefixtures("registered")
def test_registered_substitutions_hold_while_a_model_is_compiled(compiled):
    x = torch.ones(2)
    run = compiled(Model())
    assert torch.equal(run(x), x + 10)
    assert torch.equal(run(x), x + 10)
    assert torch.equal(Model()(x), x + 1)


@pytest.mark.usefixtures("registered")
def test_substitutions_are_undone_if_a_later_one_fails():
    class Broken:
        def replace(self):
            raise KeyError("broken")

        def restore(self):
            raise AssertionError("it was never applied")

    _OverwriteContextManager.registerSubsitutionManager(Broken)
    with pytest.raises(KeyError), _OverwriteContextManager():
        pass
    assert Library.function(1) == 2


def test_each_manager_class_is_registered_once_and_recreated(monkeypatch):
    monkeypatch.setattr(_OverwriteContextManager, "_registered", [])
    made, calls = [], []

    class First:
        def __init__(self):
            made.append(self)

        def replace(self):
            calls.append(("replace", type(self).__name__))

        def restore(self):
            calls.append(("restore", type(self).__name__))

    class Second(First):
        pass

    for manager in (First, Second, First):
        _OverwriteContextManager.registerSubsitutionManager(manager)
    manager = _OverwriteContextManager()
    assert [type(each) for each in made] == [First, Second]
    with manager:
        assert calls == [("replace", "First"), ("replace", "Second")]
    assert calls[2:] == [("restore", "Second"), ("restore", "First")]


def test_distributions_do_not_validate_values_during_compilation(compiled):
    class Likelihood(nn.Module):
        def forward(self, x):
            return Normal(x, x.exp()).log_prob(x + 1)

    x = torch.randn(5)
    before = Distribution._validate_args
    assert torch.equal(compiled(Likelihood())(x), Likelihood()(x))
    assert Distribution._validate_args is before
