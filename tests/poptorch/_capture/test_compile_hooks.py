import pytest
import torch
from torch import nn

from poptorch._capture.compile_hooks import registerPostCompileHook, registerPreCompileHook


class Model(nn.Module):
    def __init__(self, events):
        super().__init__()
        self.note = events.append

    def forward(self, x):
        self.note("forward")
        return x + 1


@pytest.fixture
def events():
    noted = []
    handles = [
        registerPreCompileHook(lambda: noted.append("before")),
        registerPreCompileHook(lambda: noted.append("before too")),
        registerPostCompileHook(lambda: noted.append("after")),
    ]
    yield noted
    for handle in handles:
        handle.remove()


def test_hooks_are_called_around_the_forward_of_each_compilation(compiled, events):
    run = compiled(Model(events))
    run(torch.ones(1))
    run(torch.ones(1))
    assert events == ["before", "before too", "forward", "after"]
    compiled(Model(events)).compile(torch.ones(1))
    assert events == 2 * ["before", "before too", "forward", "after"]


def test_the_last_hooks_are_called_even_if_forward_fails(compiled, events):
    class Failing(nn.Module):
        def forward(self, x):
            raise KeyError("mine")

    with pytest.raises(KeyError):
        compiled(Failing())(torch.ones(1))
    assert events == ["before", "before too", "after"]


def test_a_hook_can_be_removed(compiled):
    events = []
    handle = registerPreCompileHook(lambda: events.append("before"))
    handle.remove()
    compiled(nn.ReLU())(torch.ones(1))
    assert events == []


@pytest.mark.parametrize("register", [registerPreCompileHook, registerPostCompileHook])
def test_a_hook_must_be_callable(register):
    with pytest.raises(RuntimeError, match="must be callable"):
        register(3)
