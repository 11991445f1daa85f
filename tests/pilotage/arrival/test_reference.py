"""The reference against training loops written by hand."""

import pytest
import torch
from torch import Tensor, nn

import pilotage
from pilotage.arrival.module_copy import Skeleton
from pilotage.arrival.reference import Reference, Start, combined
from pilotage.events import Checked
from pilotage.execution.random_streams import RandomStreams
from pilotage.optim.reading import read_optimizer
from pilotage.options.batching import Batching
from pilotage.options.choices import LossRule, OutputMode, Reduction
from pilotage.program.structure import flatten

CPU = torch.device("cpu")


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.norm = nn.BatchNorm1d(2)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.norm(nn.functional.dropout(self.layer(x))).square().mean()


class Plain(Network):
    def forward(self, x):
        return self.layer(x).square().mean()


def reference(module, optimizer, **changes):
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    arguments = flatten(((torch.zeros(1),), {}))[1]
    made = {
        "skeleton": Skeleton(module, {part: part.training for part in module.modules()}),
        "arguments": arguments,
        "parsers": {},
        "plan": read_optimizer(optimizer, names),
        "loss_rule": LossRule.RETURNED,
        "reduction": Reduction.MEAN,
        "batching": Batching(gradient_accumulation=2),
        "output_mode": OutputMode.ALL,
        "autocast": None,
        "device": CPU,
        "streams": RandomStreams(CPU),
    }
    return Reference(**{**made, **changes})


def start_of(module):
    return Start(
        parameters={name: parameter.detach().clone() for name, parameter in module.named_parameters()},
        buffers={0: {name: buffer.clone() for name, buffer in module.named_buffers()}},
        slots={},
        random=[torch.get_rng_state()],
        trainable=frozenset(name for name, _ in module.named_parameters()),
    )


@pytest.mark.parametrize("reduction", Reduction)
def test_an_update_is_that_of_a_loop_written_by_hand(reduction):
    torch.manual_seed(0)
    module = Network()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    batches = [torch.randn(4, 3) for _ in range(2)]
    start = start_of(module)
    found = reference(module, optimizer, reduction=reduction).run(start, [[batch] for batch in batches])
    assert module.calls == 0
    torch.testing.assert_close(dict(module.named_parameters()), start.parameters, rtol=0, atol=0)

    torch.set_rng_state(start.random[0])
    losses = [module(batch) for batch in batches]
    for loss in losses:
        (loss / (2 if reduction is Reduction.MEAN else 1)).backward()
    optimizer.step()
    torch.testing.assert_close(found.outputs, [torch.stack(losses).detach()])
    for name, parameter in module.named_parameters():
        torch.testing.assert_close(found.parameters[name], parameter.detach())
    for name, buffer in module.named_buffers():
        torch.testing.assert_close(found.buffers[0][name], buffer)


def test_random_numbers_continue_as_if_nothing_had_run():
    torch.manual_seed(0)
    module = Network()
    start = start_of(module)
    reference(module, torch.optim.SGD(module.parameters(), lr=0.1)).run(start, [[torch.randn(4, 3)]] * 2)
    after = torch.randn(3)
    torch.manual_seed(0)
    Network()
    torch.randn(4, 3)
    assert torch.equal(after, torch.randn(3))


def test_another_precision_gives_the_same_numbers_more_exactly():
    torch.manual_seed(0)
    module = Plain()
    run = reference(module, torch.optim.SGD(module.parameters(), lr=0.1))
    start, batches = start_of(module), [[torch.randn(4, 3)]] * 2
    single, double = run.run(start, batches), run.run(start, batches, precision=torch.float64)
    assert double.parameters["layer.weight"].dtype == torch.float64
    torch.testing.assert_close(single.parameters["layer.weight"].double(), double.parameters["layer.weight"])


@pytest.mark.parametrize(
    ("mode", "expected"),
    [(OutputMode.ALL, [1, 2, 3, 4]), (OutputMode.FINAL, [3, 4]), (OutputMode.SUM, [4, 6])],
)
def test_outputs_are_combined_by_the_output_mode(mode, expected):
    outputs: list[list[Tensor]] = [[torch.tensor(float(number)), torch.tensor([7])] for number in range(1, 5)]
    first, constant = combined(outputs, mode, 2, [1])
    assert first.tolist() == expected
    assert constant.tolist() == [7]


def test_what_torch_compile_has_wrapped_is_compared_without_being_compiled(monkeypatch):
    monkeypatch.setenv("PILOTAGE_BACKEND", "cpu")

    def compiler(graph, inputs):
        raise AssertionError("compiled")

    layer = torch.compile(nn.Linear(3, 2), backend=compiler)
    optimizer, events = torch.optim.SGD(layer.parameters(), lr=0.1), []
    step = pilotage.training(layer, optimizer, loss=nn.MSELoss(), check="first", listeners=[events.append])
    step(torch.ones(4, 3), torch.zeros(4, 2))
    assert [event.agrees for event in events if isinstance(event, Checked)] == [True]


@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
@pytest.mark.parametrize("normalized", [nn.utils.weight_norm, nn.utils.spectral_norm])
def test_weights_that_a_hook_computes_are_compared(monkeypatch, normalized):
    monkeypatch.setenv("PILOTAGE_BACKEND", "cpu")
    layer = normalized(nn.Linear(3, 2))
    optimizer, events = torch.optim.SGD(layer.parameters(), lr=0.1), []
    step = pilotage.training(layer, optimizer, loss=nn.MSELoss(), check="first", listeners=[events.append])
    step(torch.ones(4, 3), torch.zeros(4, 2))
    assert [event.agrees for event in events if isinstance(event, Checked)] == [True]
