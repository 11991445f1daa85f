"""Programs with stages on several emulated cards."""

from __future__ import annotations

import operator
from dataclasses import replace
from itertools import product

import pytest
import torch
from torch import Tensor, nn
from torch.fx import Interpreter
from torch.nn import functional

import pilotage
from pilotage.devices.cpu import CpuBackend
from pilotage.errors import CaptureError
from pilotage.execution.random_streams import RandomStreams
from pilotage.execution.state import DeviceState
from pilotage.execution.walk import WalkedExecutable
from pilotage.optim.lamb import Lamb
from pilotage.optim.reading import read_optimizer
from pilotage.options.batching import Batching
from pilotage.options.execution import Execution
from pilotage.passes.stage_placement import place, placed_graph
from pilotage.program.graphs.origins import enter_stage, stage_of
from pilotage.program.layout import Section
from pilotage.program.program import Action
from pilotage.runtime.executor import Executor
from pilotage.storage.program_text import program_from_data, program_to_data

CARDS = (torch.device("cpu"), torch.device("cuda", 1), torch.device("cuda", 2))
"""Three emulated cards on the CPU; none accepts a tensor of another."""


class Emulated(Interpreter):
    """Runs a graph, and checks that all tensors of each operation are on one card."""

    def __init__(self, graph, places):
        super().__init__(graph)
        self.places = iter(places)
        self.card = {}
        self.used = set()

    def run_node(self, n):
        if n.op == "placeholder":
            self.card[n] = next(self.places)
            return super().run_node(n)
        cards = {self.card[value] for value in n.all_input_nodes}
        if n.op == "get_attr":
            self.card[n] = CARDS[0]
        elif n.op == "call_function" and n.target is torch.ops.aten._to_copy.default and "device" in n.kwargs:
            (_,) = cards
            self.card[n] = n.kwargs["device"]
        elif n.op == "call_function":
            asked = n.kwargs.get("device")
            assert len(cards) <= 1, f"{n.format_node()} takes tensors of {cards}"
            assert not cards or asked in (None, *cards), f"{n.format_node()} makes a tensor on {asked} from {cards}"
            self.card[n] = asked or next(iter(cards), CARDS[0])
            self.used.add(self.card[n])
        if n.op == "call_function" and n.target is not operator.getitem:
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            if "device" in kwargs:
                kwargs = {**kwargs, "device": torch.device("cpu")}
            result = n.target(*args, **kwargs)
            # On a card, a copy never shares memory with its source.
            is_copy = n.target is torch.ops.aten._to_copy.default
            return result.clone() if is_copy and isinstance(result, Tensor) else result
        return super().run_node(n)


class Staged(nn.Module):
    """Enters its stages itself, as the drop-ins do for their blocks."""

    def __init__(self, *stages: int) -> None:
        super().__init__()
        self.stages = stages
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in stages)
        self.norms = nn.ModuleList(nn.BatchNorm1d(4) for _ in stages)
        self.scale = nn.Parameter(torch.ones(4))
        self.register_buffer("count", torch.zeros(4))

    def forward(self, x):
        try:
            for stage, layer, norm in zip(self.stages, self.layers, self.norms, strict=True):
                enter_stage(stage)
                x = torch.relu(norm(layer(x))) * self.scale + torch.arange(4.0)
                self.count += x.detach().mean(0)
                x = x + self.count.view(-1)
            x = functional.dropout(x, 0.0) if self.training else x
            return x, functional.mse_loss(x, torch.ones_like(x))
        finally:
            enter_stage(None)


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
    "lamb": lambda p: Lamb(p, lr=0.01),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
}


def programs(module, make=None, **options):
    x = torch.randn(4 * options.get("gradient_accumulation", 1), 4)
    if make is None:
        step = pilotage.inference(module, **options)
    else:
        step = pilotage.training(module, make(module.parameters()), **options)
    step.compile(x)
    session = step._executor.session
    return session, place(session.program, CARDS), step._executor.plan


def places_of(placed, action):
    program, state_devices = placed.program, placed.state_devices
    computation, places = program.computations[action], []
    for section in computation.sections:
        match section:
            case Section.PARAMETERS | Section.SLOTS:
                places += [state_devices[name] for name in program.layout.owners(section)]
            case Section.BUFFERS:
                places += [state_devices[name] for name in program.layout.buffers]
            case _:
                places += [CARDS[0]] * len(program.layout.section(section))
    inputs = sum(node.op == "placeholder" for node in computation.graph.graph.nodes) - len(places)
    return places + [CARDS[0]] * inputs


def assert_equal_on_cards(session, placed, cards):
    """Run each computation as captured, and again on the cards, from the same state."""
    for action, computation in session.program.computations.items():
        torch.manual_seed(0)
        arguments = [
            torch.rand(node.meta["val"].shape, dtype=torch.float64).to(node.meta["val"].dtype)
            for node in computation.graph.graph.nodes
            if node.op == "placeholder"
        ]
        copies = [argument.clone() for argument in arguments]
        expected = computation.graph(*arguments)
        emulated = Emulated(placed.program.computations[action].graph, places_of(placed, action))
        outputs = emulated.run(*copies)
        torch.testing.assert_close(outputs, expected, rtol=0, atol=0, equal_nan=True)
        # In-place writes happen as well.
        torch.testing.assert_close(copies, arguments, rtol=0, atol=0, equal_nan=True)
        assert len(emulated.used) == cards


POOLED = {"gradient_accumulation": 3}
SAMPLE = [("adam", {})]
REST = [each for each in product(OPTIMIZERS, ({}, POOLED)) if each not in SAMPLE]


@pytest.mark.parametrize(
    ("optimizer", "options"), [*SAMPLE, *(pytest.param(*each, marks=pytest.mark.slow) for each in REST)]
)
def test_training_on_cards_gives_the_same_numbers(optimizer, options):
    session, placed, _ = programs(Staged(0, 1, 2), OPTIMIZERS[optimizer], **options)
    assert_equal_on_cards(session, placed, 3)


@pytest.mark.slow
def test_operations_on_all_gradients_give_the_same_numbers():
    module = Staged(0, 1, 2)
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    plan = read_optimizer(torch.optim.AdamW(module.parameters(), lr=0.01), names)
    plan = replace(plan, max_gradient_norm=0.1, automatic_loss_scaling=True, constants=frozenset())
    execution = Execution(batching=Batching(gradient_accumulation=2, replicas=2), broadcast_buffers=False)
    executor = Executor(module, execution=execution, plan=plan)
    executor.compile(torch.randn(16, 4))
    assert_equal_on_cards(executor.session, place(executor.session.program, CARDS), 3)


class Reader(nn.Module):
    """Embedding, attention, and a classifier that shares weights with the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(7, 8)
        self.attend = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
        self.classes = nn.Linear(8, 7)
        self.classes.weight = self.embed.weight

    def forward(self, words):
        try:
            enter_stage(0)
            x = self.embed(words)
            enter_stage(1)
            mask = torch.ones(words.shape[1], words.shape[1], dtype=torch.bool).triu(1)
            x = self.attend(x, src_mask=mask, is_causal=False)
            enter_stage(2)
            scores = self.classes(x)
            best = scores.argmax(-1)
            scores = torch.cat([scores, torch.zeros_like(scores)], 1)[:, : words.shape[1]]
            return best, functional.cross_entropy(scores.transpose(1, 2), words)
        finally:
            enter_stage(None)


@pytest.mark.slow
def test_a_shared_weight_is_copied_to_the_second_stage_and_trained_in_the_first():
    module = Reader()
    step = pilotage.training(module, OPTIMIZERS["adam"](module.parameters()))
    step.compile(torch.randint(0, 7, (2, 5)))
    session = step._executor.session
    placed = place(session.program, CARDS)
    assert placed.state_devices["embed.weight"] == CARDS[0]
    assert_equal_on_cards(session, placed, 3)


@pytest.mark.parametrize(("stages", "cards"), [((0, 1), 2), ((1, 0, 1), 2), ((0, 3, 2), 2), ((0, 1, 2, 3), 3)])
def test_inference_on_cards_gives_the_same_numbers(stages, cards):
    session, placed, _ = programs(Staged(*stages).eval())
    assert_equal_on_cards(session, placed, cards)


@pytest.mark.parametrize("stages", [(0,), (0, 0), (0, 3)])
def test_stages_of_one_card_stay_together(stages):
    session, placed, _ = programs(Staged(*stages))
    assert placed.program is session.program
    assert placed.state_devices == {}


def test_one_card_takes_all_stages():
    session, _, _ = programs(Staged(0, 1))
    assert place(session.program, CARDS[:1]).program is session.program


def test_weights_are_on_the_device_of_their_first_use():
    _, placed, plan = programs(Staged(0, 1, 2), OPTIMIZERS["adam"], gradient_accumulation=2)
    for stage in range(3):
        for name in ("layers.{}.weight", "layers.{}.bias", "norms.{}.weight", "norms.{}.running_mean"):
            assert placed.state_devices[name.format(stage)] == CARDS[stage]
    assert placed.state_devices["scale"] == CARDS[0]
    elsewhere = {name: torch.device("meta") for name, card in placed.state_devices.items() if card == CARDS[2]}
    state = DeviceState(placed.program.layout, plan, torch.device("cpu"), 1, True, elsewhere)
    assert {name for name, tensor in state.parameters.items() if tensor.is_meta} == {
        name for name in state.parameters if ".2." in name
    }
    assert {slot.parameter for slot, tensor in state.slots.items() if tensor.is_meta} == {
        name for name in state.parameters if ".2." in name
    }


def test_backward_runs_where_forward_did():
    session, _, _ = programs(Staged(0, 1), OPTIMIZERS["sgd"])
    (computation,) = session.program.computations.values()
    stages = [
        stage_of(node) for node in computation.graph.graph.nodes if "native_batch_norm_backward" in str(node.target)
    ]
    assert stages == [1, 0]


def test_a_placed_program_is_walked_like_any_other():
    torch.manual_seed(0)
    session, _, plan = programs(Staged(0, 1, 2), OPTIMIZERS["sgd"], gradient_accumulation=2)
    same = torch.device("cpu")
    placed = place(session.program, (same, same, same))
    results = []
    for program in (session.program, placed.program):
        executable = WalkedExecutable(program, session.schedule, lambda failure, error: False)
        state = DeviceState(program.layout, plan, CpuBackend.capabilities.device, 1, True, placed.state_devices)
        with torch.no_grad():
            for number, tensor in enumerate((*state.parameters.values(), *state.buffers().values())):
                tensor.copy_(torch.rand(tensor.shape, generator=torch.Generator().manual_seed(number)))
        inputs = [torch.rand(8, 4, generator=torch.Generator().manual_seed(99))]
        outputs = executable.run(state, RandomStreams(same), inputs)
        results.append([*outputs, *state.parameters.values(), *state.buffers().values()])
    torch.testing.assert_close(results[1], results[0], rtol=0, atol=0)


def test_stages_are_stored_in_a_file():
    session, placed, _ = programs(Staged(0, 1, 2), OPTIMIZERS["sgd"])
    data, constants = program_to_data(session.program)
    again = place(program_from_data(data, constants), CARDS)
    assert again.state_devices == placed.state_devices
    nodes = [
        [node.format_node() for node in p.program.computations[Action.TRAIN].graph.graph.nodes] for p in (placed, again)
    ]
    assert len(nodes[0]) == len(nodes[1])


def test_a_write_to_tensors_on_two_cards_is_refused():
    graph = torch.fx.Graph()
    first, second = graph.placeholder("first"), graph.placeholder("second")
    graph.call_function(torch.ops.aten.set_.source_Tensor, (first, second))
    operation = graph.call_function(torch.ops.aten._fused_sgd_.default, ([first, second], [first, second], []), {})
    graph.output((operation,))
    with pytest.raises(CaptureError, match="writes to tensors of several stages"):
        placed_graph(torch.fx.GraphModule(nn.Module(), graph), CARDS, CARDS[:2])
