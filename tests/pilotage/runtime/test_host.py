"""Every way of reading the user's module after training shows the trained values."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import subprocess
import sys
import textwrap
import weakref

import numpy
import pytest
import torch
from torch import nn

import pilotage
from pilotage.runtime.host import StaleParameter

pytestmark = pytest.mark.slow


def through_a_file(value, **options):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, **options)


def weights_of(module):
    return [tensor.detach() for tensor in (*module.parameters(), *module.buffers())]


def state_dict(held):
    return list(held.module.state_dict().values())


def state_dict_with_variables(held):
    return [tensor.detach() for tensor in held.module.state_dict(keep_vars=True).values()]


class Held:
    """Tensors that a user may hold from before training."""

    def __init__(self, module, optimizer):
        self.module = module
        self.optimizer = optimizer
        self.parameters = list(module.parameters())
        self.buffers = list(module.buffers())
        self.weight = module.layer.weight


ROUTES = {
    "parameters": lambda held: [p.detach() for p in (*held.module.parameters(), *held.module.buffers())],
    "state_dict": state_dict,
    "state_dict_with_variables": state_dict_with_variables,
    "held_before": lambda held: [t.detach() for t in (*held.parameters, *held.buffers)],
    "data": lambda held: [t.data for t in (*held.parameters, *held.buffers)],
    "clones": lambda held: [t.clone().detach() for t in (*held.parameters, *held.buffers)],
    "numpy": lambda held: [torch.tensor(t.detach().numpy()) for t in (*held.parameters, *held.buffers)],
    "asarray": lambda held: [torch.tensor(numpy.asarray(t.detach())) for t in (*held.parameters, *held.buffers)],
    "lists": lambda held: [torch.tensor(t.tolist(), dtype=t.dtype) for t in (*held.parameters, *held.buffers)],
    "dlpack": lambda held: [torch.from_dlpack(t.detach()) for t in (*held.parameters, *held.buffers)],
    "deepcopy": lambda held: weights_of(copy.deepcopy(held.module)),
    "copy": lambda held: weights_of(copy.copy(held.module)),
    "deepcopied_tensors": lambda held: [t.detach() for t in copy.deepcopy([*held.parameters, *held.buffers])],
    "copied_tensors": lambda held: [copy.copy(t).detach() for t in (*held.parameters, *held.buffers)],
    "pickle": lambda held: weights_of(pickle.loads(pickle.dumps(held.module))),
    "pickled_tensors": lambda held: [t.detach() for t in pickle.loads(pickle.dumps([*held.parameters, *held.buffers]))],
    "saved_module": lambda held: weights_of(through_a_file(held.module, weights_only=False)),
    "saved_state": lambda held: list(through_a_file(held.module.state_dict(), weights_only=True).values()),
    "saved_parameters": lambda held: [t.detach() for t in through_a_file([*held.parameters, *held.buffers])],
    "foreach": lambda held: torch._foreach_mul([t.detach() for t in (*held.parameters, *held.buffers)], 1),
    "foreach_of_held": lambda held: [t.detach() for t in torch._foreach_add(held.parameters, 0)],
    "vector": lambda held: [nn.utils.parameters_to_vector(held.parameters).detach()],
    "other_module": lambda held: load_into_another(held),
    "optimizer": lambda held: [p.detach() for group in held.optimizer.param_groups for p in group["params"]],
    "functional_call": lambda held: [
        torch.func.functional_call(held.module.layer, dict(held.module.layer.named_parameters()), torch.eye(4)).detach()
    ],
    "attribute": lambda held: [held.module.layer.weight.detach() + 0],
    "held_attribute": lambda held: [held.weight.sum().detach()],
    "comparison": lambda held: [(held.weight > 0)],
    "index": lambda held: [held.weight[0, 1].detach()],
    "assignment": lambda held: [assigned_from(held.weight)],
    "in_place_target": lambda held: [torch.zeros(3, 4).add_(held.weight.detach())],
    "call": lambda held: [held.module.eval()(torch.ones(2, 4))[0].detach()],
    "text": lambda held: [torch.tensor([len(repr(held.weight)) > 0]), held.weight.detach()],
    "storage": lambda held: [torch.tensor(held.weight.untyped_storage().tolist(), dtype=torch.uint8)],
}


def load_into_another(held):
    other = type(held.module)()
    other.load_state_dict(held.module.state_dict())
    return weights_of(other)


def assigned_from(weight):
    target = torch.zeros(3, 4)
    with torch.no_grad():
        target[:] = weight
    return target


@pytest.mark.parametrize("route", ROUTES)
def test_every_way_of_reading_shows_the_trained_weights(route, pair, assert_equal):
    trained = pair()
    held = Held(trained.module, trained.optimizer)
    trained.train(3)
    assert trained.untouched()
    plain = Held(trained.plain, trained.plain_optimizer)
    assert_equal(ROUTES[route](held), ROUTES[route](plain))
    assert trained.plain_again()


@pytest.mark.parametrize("route", ["parameters", "held_before", "saved_state", "call", "optimizer"])
def test_training_continues_after_reading(route, pair, assert_equal):
    trained = pair()
    held = Held(trained.module, trained.optimizer)
    plain = Held(trained.plain, trained.plain_optimizer)
    for _ in range(3):
        trained.module.train()
        trained.plain.train()
        mine, theirs = trained.train()
        assert_equal(mine, theirs)
        assert trained.untouched()
        assert_equal(ROUTES[route](held), ROUTES[route](plain))


METADATA = {
    "shape": lambda t: t.shape,
    "size": lambda t: (t.size(), t.dim(), t.ndim, t.numel(), t.stride(), t.element_size()),
    "kind": lambda t: (t.dtype, t.device, t.layout, t.requires_grad, t.is_leaf, t.is_floating_point(), t.grad),
    "contiguous": lambda t: t.is_contiguous(),
    "identity": lambda t: (id(t), hash(t), isinstance(t, torch.Tensor)),
}


@pytest.mark.parametrize("ask", METADATA)
def test_reading_only_metadata_fetches_nothing(ask, pair):
    trained = pair()
    expected = [METADATA[ask](t) for t in (*trained.module.parameters(), *trained.module.buffers())]
    trained.train(2)
    tensors = [*trained.module.parameters(), *trained.module.buffers()]
    assert [METADATA[ask](t) for t in tensors] == expected
    assert all(isinstance(p, nn.Parameter) for p in trained.module.parameters())
    assert trained.untouched()


def test_counting_parameters_fetches_nothing(pair):
    trained = pair()
    trained.train()
    assert sum(p.numel() for p in trained.module.parameters() if p.requires_grad) == 4 * 3 + 3 + 3 + 3
    assert trained.untouched()


def test_after_reading_the_tensors_are_plain_and_the_same_objects(pair):
    trained = pair()
    before = [id(t) for t in (*trained.module.parameters(), *trained.module.buffers())]
    trained.train()
    trained.module.layer.bias.sum()
    assert trained.plain_again()
    assert [id(t) for t in (*trained.module.parameters(), *trained.module.buffers())] == before


def test_an_eager_loop_can_continue_after_the_program(pair, assert_same_state):
    trained = pair(make=lambda p: torch.optim.SGD(p, lr=0.1))
    trained.train(2)
    for _ in range(2):
        batch = trained.batch()
        trained.optimizer.zero_grad()
        trained.module(batch)[1].backward()
        trained.optimizer.step()
        trained.train_plain(batch)
    assert_same_state(trained.module, trained.plain)


def test_an_optimizer_of_torchs_steps_from_trained_values(pair, assert_same_state):
    trained = pair(make=lambda p: torch.optim.SGD(p, lr=0.1))
    trained.train()
    for module, optimizer in ((trained.module, trained.optimizer), (trained.plain, trained.plain_optimizer)):
        for parameter in module.parameters():
            parameter.grad = torch.ones_like(parameter)
        optimizer.step()
    assert_same_state(trained.module, trained.plain)


def test_the_wrapper_can_be_deleted_before_the_first_reading(pair, assert_same_state):
    trained = pair()
    trained.train(2)
    session = weakref.ref(trained.executor.session)
    trained.step = None
    gc.collect()
    assert session() is None
    assert trained.untouched()
    assert_same_state(trained.module, trained.plain)
    assert trained.plain_again()


@pytest.mark.parametrize("look", [True, False])
def test_nothing_is_kept_alive_after_module_and_wrapper(look, network):
    module = network()
    step = pilotage.training(module, torch.optim.SGD(module.parameters(), lr=0.1))
    step(torch.randn(4, 4))
    if look:
        module.layer.weight.sum()
    kept = [weakref.ref(thing) for thing in (module, module.layer.weight, step._executor.session.state)]
    del module, step
    gc.collect()
    assert [reference() for reference in kept] == [None, None, None]


def test_device_memory_is_freed_after_the_last_reading(network):
    module = network()
    step = pilotage.training(module, torch.optim.SGD(module.parameters(), lr=0.1))
    step(torch.randn(4, 4))
    state = weakref.ref(step._executor.session.state)
    del step
    gc.collect()
    assert state() is not None
    module.layer.weight.sum()
    gc.collect()
    assert state() is None


def test_a_parameter_class_of_the_users_own_keeps_its_class_and_shows_trained_values(assert_equal):
    class Special(nn.Parameter):
        pass

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = Special(torch.ones(3))

        def forward(self, x):
            return pilotage.mark_loss((self.weight * x).sum())

    module = Network()
    step = pilotage.training(module, torch.optim.SGD(module.parameters(), lr=1.0))
    for number in range(1, 3):
        step(torch.ones(3))
        assert type(module.weight) is Special
        assert_equal(module.weight.detach().as_subclass(torch.Tensor), torch.full((3,), 1.0 - number))


def test_no_class_of_torch_is_changed(pair):
    names = set(vars(nn.Parameter)), set(vars(torch.Tensor)), set(vars(nn.Module))
    trained = pair()
    kind = type(trained.module)
    trained.train()
    assert type(trained.module) is kind
    assert (set(vars(nn.Parameter)), set(vars(torch.Tensor)), set(vars(nn.Module))) == names
    assert isinstance(trained.module.layer._parameters["weight"], StaleParameter)


def test_gradients_flow_into_trained_weights(pair, assert_equal):
    trained = pair()
    trained.train()
    batch = trained.batch()
    for module in (trained.module, trained.plain):
        module.zero_grad()
        module(batch)[1].backward()
    assert_equal(trained.module.layer.weight.grad, trained.plain.layer.weight.grad)


@pytest.mark.slow
def test_a_saved_state_loads_without_pilotage(pair, tmp_path):
    trained = pair()
    trained.train(2)
    torch.save(trained.module.state_dict(), tmp_path / "state.pth")
    torch.save(trained.plain.state_dict(), tmp_path / "plain.pth")
    script = tmp_path / "load.py"
    script.write_text(
        textwrap.dedent(
            """
            import sys

            class Nothing:
                def find_spec(self, name, path=None, target=None):
                    if name.partition(".")[0] in ("pilotage", "poptorch"):
                        raise ImportError(name)

            sys.meta_path.insert(0, Nothing())
            import torch

            mine, plain = (torch.load(file, weights_only=True) for file in sys.argv[1:])
            assert list(mine) == list(plain)
            assert all(type(value) is torch.Tensor for value in mine.values())
            assert all(torch.equal(mine[name], plain[name]) for name in mine)
            assert "pilotage" not in sys.modules
            print("loaded")
            """
        )
    )
    files = [str(tmp_path / "state.pth"), str(tmp_path / "plain.pth")]
    result = subprocess.run([sys.executable, script, *files], capture_output=True, text=True, timeout=120, check=False)
    assert result.stdout == "loaded\n", result.stderr


ALIASES = {
    "data": lambda module: module.layer.weight.data,
    "detached": lambda module: module.layer.weight.detach(),
    "view": lambda module: module.layer.weight.view(3, 4),
    "row": lambda module: module.layer.weight.detach().reshape(-1)[:12].view(3, 4),
    "numpy": lambda module: module.layer.weight.detach().numpy(),
    "state_dict": lambda module: module.state_dict()["layer.weight"],
    "other_parameter": lambda module: nn.Parameter(module.layer.weight.data),
}


@pytest.mark.parametrize("alias", ALIASES)
def test_a_tensor_in_the_same_memory_shows_every_update(alias, pair, assert_equal):
    trained = pair()
    before = ALIASES[alias](trained.module)
    for _ in range(3):
        trained.train()
        assert_equal(torch.as_tensor(before).detach(), trained.plain.layer.weight.detach())


def test_an_alias_taken_between_calls_shows_the_updates_after_it(pair, assert_equal):
    trained = pair()
    trained.train(2)
    alias = trained.module.norm.running_mean.view(-1)
    trained.train(2)
    assert_equal(alias, trained.plain.norm.running_mean)


def test_tensors_are_copied_only_while_they_have_an_alias(pair):
    trained = pair()
    alias = trained.module.layer.weight.data
    trained.train()
    keeper = trained.executor.weights.trained
    assert keeper._shared == ["layer.weight"]
    assert trained.untouched()
    del alias
    trained.train()
    assert keeper._shared == []


def test_clipping_gradients_on_the_host_is_reported_once(pair, warned):
    trained = pair(listeners=[warned])
    for _ in range(3):
        trained.train()
        nn.utils.clip_grad_norm_(trained.module.parameters(), 1.0)
        trained.optimizer.zero_grad()
    clipping, zeroing = warned.messages
    assert clipping.startswith("clip_grad_norm_() has no effect")
    assert "pass clip_grad_norm= or clip_grad_value= to pilotage.training" in clipping
    assert zeroing.startswith("optimizer.zero_grad()")
