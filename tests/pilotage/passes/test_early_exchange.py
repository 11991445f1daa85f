from __future__ import annotations

import pytest
import torch
from torch import nn

from pilotage.execution.early import EarlySender
from pilotage.optim.reading import read_optimizer
from pilotage.options.batching import Batching
from pilotage.options.choices import Pooling, Tier
from pilotage.options.execution import Execution
from pilotage.passes.early_exchange import with_early_exchange
from pilotage.program.graphs.straight_line import straight_line
from pilotage.program.program import Action
from pilotage.runtime.executor import Executor


def session_of(model, inputs, pooling=Pooling.POST):
    plan = read_optimizer(
        torch.optim.SGD(model.parameters(), lr=0.1),
        {id(parameter): name for name, parameter in model.named_parameters()},
    )
    execution = Execution(batching=Batching(gradient_accumulation=2), pooling=pooling, tier=Tier.GRAPH, backend="cpu")
    executor = Executor(model, execution=execution, plan=plan)
    executor.compile(*inputs)
    return executor.session


class Deep(nn.Sequential):
    def __init__(self, width=32):
        torch.manual_seed(0)
        super().__init__(*(layer for _ in range(4) for layer in (nn.Linear(width, width), nn.Tanh())))
        self.unused = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return nn.functional.mse_loss(super().forward(x), x)


def run_early(session, part_bytes, micro_batch, begin):
    computation = session.program.computations[Action.ACCUMULATE]
    graph = with_early_exchange(computation, computation.graph, session.program.layout, begin, part_bytes)
    assert graph is not None
    return straight_line(graph)(*session.attached.arguments(computation.sections, 0), *micro_batch)


def test_each_part_is_exchanged_when_complete_and_the_first_before_backward_ends():
    session = session_of(Deep(), [torch.randn(6, 32)])
    micro_batch = [torch.randn(3, 32)]
    state, computation = session.attached, session.program.computations[Action.ACCUMULATE]
    expected = straight_line(computation.graph)(*state.arguments(computation.sections, 0), *micro_batch)
    gradients = state.flat_gradients.clone()
    state.forget_gradients()
    seen = []
    found = run_early(session, 4096, micro_batch, lambda part: seen.append((part, state.flat_gradients.clone())))
    assert torch.equal(found[0], expected[0])
    assert torch.equal(state.flat_gradients, gradients)
    assert len(seen) > 1
    assert all(torch.equal(flat[part], gradients[part]) for part, flat in seen)
    first = seen[0][1]
    assert not first[: seen[0][0].start].any()
    covered = sorted(index for part, _ in seen for index in range(part.start, part.stop))
    assert covered == list(range(gradients.numel()))


def test_small_gradients_are_exchanged_in_one_part():
    session = session_of(Deep(), [torch.randn(6, 32)])
    computation = session.program.computations[Action.ACCUMULATE]
    assert with_early_exchange(computation, computation.graph, session.program.layout, print) is None


def test_a_running_mean_is_exchanged_in_one_part():
    session = session_of(Deep(), [torch.randn(6, 32)], pooling=Pooling.RUNNING)
    computation = session.program.computations[Action.ACCUMULATE]
    assert with_early_exchange(computation, computation.graph, session.program.layout, print, 4096) is None


def test_only_the_last_gradients_before_an_update_are_exchanged_early():
    session = session_of(Deep(width=600), [torch.randn(4, 600)])
    state = session.attached
    sent = []

    def exchange(part):
        sent.append(part.numel())
        return lambda: None

    sender = EarlySender(session.program, session.schedule)
    assert sender.call(1, state, checked=True) is None
    state.exchange = exchange
    assert sender.call(0, state, checked=True) is None
    call = sender.call(1, state, checked=True)
    computation = session.program.computations[Action.ACCUMULATE]
    call(*state.arguments(computation.sections, 0), torch.randn(2, 600))
    assert len(sent) > 1
    assert sum(sent) == state.flat_gradients.numel()


@pytest.mark.parametrize("begun", [False, True])
def test_pending_exchanges_are_awaited_and_nothing_is_sent_twice(begun):
    state = session_of(Deep(), [torch.randn(6, 32)]).attached
    told = []

    def exchange(part):
        told.append(part.numel())
        return lambda: told.append("waited")

    state.exchange = exchange
    total = state.flat_gradients.numel()
    if begun:
        state.begin_exchange(slice(10, total))
        state.begin_exchange(slice(0, 10))
    state.exchange_gradients()
    assert told == ([total - 10, 10, "waited", "waited"] if begun else [total, "waited"])
