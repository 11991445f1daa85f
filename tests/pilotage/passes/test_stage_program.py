"""The stages of a program, run in one process, compute the same as the whole program."""

from __future__ import annotations

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import pilotage
from pilotage.capture.capture import Request, capture
from pilotage.capture.model import modes_of
from pilotage.errors import CaptureError, OptionError
from pilotage.execution.random_streams import RandomStreams
from pilotage.execution.state import DeviceState
from pilotage.optim.reading import read_optimizer
from pilotage.options.batching import Batching
from pilotage.options.choices import OutputMode, Recomputation
from pilotage.passes.anchors import anchored
from pilotage.passes.recomputation import recomputed
from pilotage.passes.stage_program import cut_program
from pilotage.program.graphs.forward_marks import keep_for_backward
from pilotage.program.program import Program
from pilotage.program.schedule import make_schedule
from pilotage.program.specification import TensorSpec
from pilotage.program.structure import flatten
from pilotage.strategies.stages.work import StageWork

CPU = torch.device("cpu")

pytestmark = pytest.mark.slow


def captured(module: nn.Module, inputs, *, trains: bool = True) -> Program:
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    plan = read_optimizer(torch.optim.SGD(module.parameters(), lr=0.1), names) if trains else None
    _, arguments = flatten((tuple(inputs), {}), {})
    request = Request(
        module=module,
        arguments=arguments,
        inputs=[TensorSpec.of(tensor) for tensor in inputs],
        modes=modes_of(module),
        plan=plan,
        batching=Batching(),
        check_loss=False,
        separate_gradients=True,
    )
    return capture(request)


class Stages:
    """All stages of a module in one process; carriers are passed on directly."""

    def __init__(
        self, module: nn.Module, inputs, stages: int, *, trains=True, anchors=(), again=Recomputation.MARKED
    ) -> None:
        self.program = anchored(recomputed(captured(module, inputs, trains=trains), again), anchors)
        self.cuts = [cut_program(self.program, stage, stages, CPU) for stage in range(stages)]
        plan = self.program.plan
        self.states = [DeviceState(cut.program.layout, plan, CPU, replicas=1, pools=trains) for cut in self.cuts]
        sections = next(iter(self.program.computations.values())).sections
        self.works = [StageWork(cut.program, cut.graphs, sections, CPU) for cut in self.cuts]
        for state in self.states:
            state.load_weights(dict(module.named_parameters()), dict(module.named_buffers()))
        self.streams = [RandomStreams(CPU, [7 + stage]) for stage in range(stages)]

    def run(self, batches):
        """Run micro-batches, several in flight as in a pipeline; returns their outputs."""
        batching = Batching(gradient_accumulation=len(batches))
        trains = self.program.trains
        steps = make_schedule(
            batching if trains else Batching(device_iterations=len(batches)), trains=trains, mode=OutputMode.ALL
        ).steps[: len(batches)]
        for work, state, streams in zip(self.works, self.states, self.streams, strict=True):
            work.begin(state, streams, steps, batches)
        carriers = []
        for number in range(len(batches)):
            carrier = torch.zeros(1)
            for work in self.works:
                carrier = work.forward(number, carrier)
            carriers.append(carrier)
        if trains:
            for number, carrier in enumerate(carriers):
                for work in reversed(self.works):
                    carrier = work.backward(number, carrier)
        return [self._outputs(number) for number in range(len(batches))]

    def _outputs(self, number: int):
        found = {position: tensor for work in self.works for position, tensor in work.outputs[number].items()}
        return [found[position] for position in self.cuts[0].outputs]

    @property
    def gradients(self):
        return {name: pool for state in self.states for name, pool in state.pools.items()}

    @property
    def buffers(self):
        return {name: buffer for state in self.states for name, buffer in state.buffers().items()}


def assert_as_eager(module: nn.Module, stages: int, batches, **options) -> Stages:
    plain = copy.deepcopy(module)
    cut = Stages(module, batches[0], stages, **options)
    outputs = cut.run([list(map(torch.clone, batch)) for batch in batches])
    for mine, batch in zip(outputs, batches, strict=True):
        theirs = plain(*batch)
        theirs[-1].backward()
        for output, expected in zip(mine, theirs, strict=True):
            torch.testing.assert_close(output, expected.detach(), rtol=1e-5, atol=1e-6)
    for name, parameter in plain.named_parameters():
        expected = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        torch.testing.assert_close(
            cut.gradients[name], expected, rtol=1e-5, atol=1e-6, msg=lambda text, n=name: f"{n}: {text}"
        )
    for name, buffer in plain.named_buffers():
        torch.testing.assert_close(cut.buffers[name], buffer)
    return cut


class Chain(nn.Module):
    """Layers in separate stages, with skip connections and an auxiliary output for each."""

    def __init__(self, places: list[int], skips: set[tuple[int, int]]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in places)
        self.places, self.skips = places, skips

    def forward(self, x, target):
        values = [x]
        for number, (place, layer) in enumerate(zip(self.places, self.layers, strict=True)):
            pilotage.enter_stage(place)
            value = torch.tanh(layer(values[-1]))
            for earlier, later in self.skips:
                if later == number:
                    value = value + values[earlier]
            values.append(value)
        return *(value.sum() for value in values), pilotage.mark_loss(functional.mse_loss(values[-1], target))


@settings(max_examples=6, deadline=None)
@given(st.data())
def test_gradients_equal_eager_wherever_a_chain_with_skips_is_cut(data):
    stages = data.draw(st.integers(2, 4), "stages")
    more = data.draw(st.lists(st.integers(0, stages - 1), max_size=3), "more layers")
    places = sorted([*range(stages), *more])
    pairs = st.tuples(st.integers(0, len(places) - 1), st.integers(0, len(places) - 1)).filter(lambda p: p[0] < p[1])
    module = Chain(places, data.draw(st.sets(pairs, max_size=3), "skips"))
    assert_as_eager(module, stages, [[torch.randn(2, 3), torch.randn(2, 3)] for _ in range(2)])


class Network(nn.Module):
    """Two stages made of two functions."""

    def __init__(self, first, second, **parts) -> None:
        super().__init__()
        self.first, self.second = first, second
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x, target):
        pilotage.enter_stage(0)
        hidden = self.first(self, x)
        pilotage.enter_stage(1)
        output = self.second(self, hidden)
        return output, functional.mse_loss(output, target)


def linear():
    return nn.Linear(4, 4)


def marked(value):
    keep_for_backward(value)
    return value


def attended(network, x):
    return network.attention(x.unsqueeze(0), x.unsqueeze(0), x.unsqueeze(0))[0].squeeze(0)


NETWORKS = {
    "running statistics": lambda: Network(
        lambda n, x: n.norm(n.layer(x)),
        lambda n, h: n.other(h),
        layer=linear(),
        norm=nn.BatchNorm1d(4),
        other=nn.BatchNorm1d(4),
    ),
    "a weight of both stages": lambda: Network(
        lambda n, x: n.layer(x), lambda n, h: n.layer(torch.tanh(h)) @ n.layer.weight, layer=linear()
    ),
    "an operation in place behind the cut": lambda: Network(
        lambda n, x: n.layer(x), lambda n, h: n.other(h.relu_()), layer=linear(), other=linear()
    ),
    "numbers and masks across the cut": lambda: Network(
        lambda n, x: (n.layer(x), x > 0, (x * 3).long()),
        lambda n, h: n.other(h[0].masked_fill(h[1], 0.5)) + n.table(h[2].clamp(0, 3)).mean(1),
        layer=linear(),
        other=linear(),
        table=nn.Embedding(4, 4),
    ),
    "a transposed value across the cut": lambda: Network(
        lambda n, x: n.layer(x).t(), lambda n, h: n.other(h.t().reshape(-1, 4)), layer=linear(), other=linear()
    ),
    "channels last across the cut": lambda: Network(
        lambda n, x: n.convolution(x.reshape(1, 1, -1, 4).to(memory_format=torch.channels_last)),
        lambda n, h: n.norm(h).mean(1).reshape(-1, 4),
        convolution=nn.Conv2d(1, 4, 3, padding=1),
        norm=nn.GroupNorm(2, 4),
    ),
    "a part that is computed twice": lambda: Network(
        lambda n, x: checkpoint(lambda v: torch.tanh(n.layer(v)), x, use_reentrant=False),
        lambda n, h: checkpoint(lambda v: torch.tanh(n.other(v)), h, use_reentrant=False),
        layer=linear(),
        other=linear(),
    ),
    "values that are computed again between marks": lambda: Network(
        lambda n, x: marked(torch.sin(torch.tanh(n.layer(x)))),
        lambda n, h: marked(torch.tanh(torch.sin(n.other(h)))) * 2,
        layer=linear(),
        other=linear(),
    ),
    "a parameter that nothing uses": lambda: Network(
        lambda n, x: n.layer(x), lambda n, h: h * 2, layer=linear(), unused=linear()
    ),
    "a stage that trains nothing": lambda: Network(lambda n, x: x * 2, lambda n, h: n.layer(h), layer=linear()),
    "attention": lambda: Network(
        attended, lambda n, h: n.layer(h), attention=nn.MultiheadAttention(4, 2), layer=linear()
    ),
    "recurrence": lambda: Network(
        lambda n, x: n.first_cells(x)[0], lambda n, h: n.cells(h)[0], first_cells=nn.LSTM(4, 4), cells=nn.GRU(4, 4)
    ),
    "a buffer that grows and is read by backward": lambda: Network(
        counted, lambda n, h: n.layer(h), layer=linear(), weight=nn.Parameter(torch.ones(4))
    ),
}


def counted(network, x):
    first, _ = network.total.split(1)
    first.add_(1)
    return x * network.weight * first


@pytest.mark.parametrize("name", NETWORKS)
def test_stages_compute_what_eager_pytorch_computes(name):
    torch.manual_seed(0)
    module = NETWORKS[name]()
    if "buffer" in name:
        module.register_buffer("total", torch.zeros(2))
    assert_as_eager(module, 2, [[torch.randn(6, 4), torch.randn(6, 4)] for _ in range(3)])


@pytest.mark.parametrize("name", ["running statistics", "attention"])
def test_stages_can_recompute_everything_except_what_they_send(name):
    batches = [[torch.randn(6, 4), torch.randn(6, 4)] for _ in range(3)]
    cut = assert_as_eager(NETWORKS[name](), 2, batches, again=Recomputation.STAGES)
    plain = Stages(NETWORKS[name](), batches[0], 2)
    kept = [[len(each.graphs.backward.graph.graph.nodes) for each in both.cuts] for both in (cut, plain)]
    assert sum(kept[0]) > sum(kept[1]), "backward computes more than it did"


def test_inference_programs_are_cut_too():
    module = NETWORKS["running statistics"]().eval()
    batches = [[torch.randn(6, 4), torch.randn(6, 4)] for _ in range(3)]
    for mine, batch in zip(Stages(module, batches[0], 2, trains=False).run(batches), batches, strict=True):
        torch.testing.assert_close(tuple(mine), module(*batch))


def test_a_shared_weight_belongs_to_its_first_stage_and_is_sent_to_the_others():
    cut = Stages(NETWORKS["a weight of both stages"](), [torch.randn(6, 4), torch.randn(6, 4)], 2)
    assert cut.cuts[1].state_stages == {"layer.weight": 0, "layer.bias": 0}
    assert cut.cuts[0].shared_parameters == ("layer.weight", "layer.bias")
    assert cut.states[1].parameters == {}


def test_values_in_any_stage_can_be_anchored():
    module, batch = NETWORKS["recurrence"](), [torch.randn(6, 4), torch.randn(6, 4)]
    names = ["gradient of cells.weight_hh_l0", "gradient of first_cells.weight_hh_l0", "input 0"]
    cut = Stages(module, batch, 2, anchors=names)
    (outputs,) = cut.run([batch])
    assert len(outputs) == 5
    torch.testing.assert_close(outputs[2], cut.gradients["cells.weight_hh_l0"])
    torch.testing.assert_close(outputs[3], cut.gradients["first_cells.weight_hh_l0"])
    torch.testing.assert_close(outputs[4], batch[0])


def test_only_inputs_that_later_stages_use_have_to_be_shared():
    cut = Stages(NETWORKS["recurrence"](), [torch.randn(6, 4), torch.randn(6, 4)], 2)
    assert [each.graphs.inputs for each in cut.cuts] == [(1,), (1,)]


def refuse(module, match, *, stages=2, error=CaptureError):
    inputs = [torch.randn(6, 4), torch.randn(6, 4)]
    with pytest.raises(error, match=match):
        cut_program(captured(module, inputs), 0, stages, CPU)


def test_a_wrong_number_of_stages_is_refused():
    expected = r"^The model has 2 stages, but poprun was started with --ipus-per-replica 3\. Start it with .* 2, .*\.$"
    refuse(NETWORKS["recurrence"](), expected, stages=3, error=OptionError)
    refuse(WithoutStages(), r"^The model has 1 stage, but poprun", error=OptionError)


class WithoutStages(nn.Linear):
    def __init__(self) -> None:
        super().__init__(4, 4)

    def forward(self, x, target):
        return functional.mse_loss(super().forward(x), target)


def returning(network, hidden):
    pilotage.enter_stage(0)
    return network.layer(hidden)


def test_a_forward_that_returns_to_an_earlier_stage_is_refused_with_its_line():
    module = Network(lambda n, x: x, lambda n, h: returning(n, torch.tanh(h)), layer=linear())
    refuse(module, r"returns to stage 0 after stage 1[^$]*test_stage_program\.py")


def test_state_that_two_stages_change_is_refused():
    module = Network(counted, lambda n, h: counted(n, n.layer(h)), layer=linear(), weight=nn.Parameter(torch.ones(4)))
    module.register_buffer("total", torch.zeros(2))
    refuse(module, r"writes to .* in stage 1")


def test_inputs_that_are_written_to_are_refused():
    module = Network(lambda n, x: n.layer(x.mul_(2)), lambda n, h: h + 1, layer=linear())
    refuse(module, "write to the inputs")
