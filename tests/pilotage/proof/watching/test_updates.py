"""What is recorded of scripts that train by themselves, and of programs: in processes of their own."""

import sys

import pytest
import torch

from pilotage.proof.running import run_watched
from pilotage.proof.watching.settings import WatchSettings
from pilotage.proof.watching.updates import _add_noise_to_gradients
from pilotage.proof.weights import distance

DATA = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(1)
data = TensorDataset(torch.randn(64, 6), torch.randn(64, 1))
model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.2), nn.Linear(8, 1))
"""
EAGER = """
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 4, 0.5)
for epoch in range(3):
    model.train()
    for number, (x, y) in enumerate(DataLoader(data, batch_size=4, shuffle=True), 1):
        (nn.functional.mse_loss(model(x), y) / 2).backward()
        if number % 2 == 0:
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        for x, y in DataLoader(data, batch_size=16):
            model(x)
torch.save(model.state_dict(), "model.pt")
"""
PROGRAM = """
import pilotage
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
step = pilotage.training(model, optimizer, loss=nn.MSELoss(), gradient_accumulation=2, device_iterations=2)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 4, 0.5)
for epoch in range(3):
    for x, y in DataLoader(data, batch_size=16, shuffle=True):
        step(x, y)
        schedule.step()
"""


CLOSURE = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(data, batch_size=8):
    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss
    optimizer.step(closure)
"""

TWO_OPTIMIZERS = """
first = torch.optim.Adam(model[0].parameters(), lr=0.01)
last = torch.optim.SGD(model[2].parameters(), lr=0.1)
for number, (x, y) in enumerate(DataLoader(data, batch_size=4, shuffle=True)):
    first.zero_grad(), last.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    first.step()
    if number != 4:
        last.step()
"""


PLAIN = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(data, batch_size=8):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
"""
ASKED = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(data, batch_size=8):
    loss = nn.functional.mse_loss(model(x), y)
    for each, gradient in zip(model.parameters(), torch.autograd.grad(loss, model.parameters())):
        each.grad = gradient
    optimizer.step()
"""
TRANSFORMED = """
def compute(parameters, x, y):
    return nn.functional.mse_loss(torch.func.functional_call(model, parameters, (x,)), y)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(data, batch_size=8):
    gradients = torch.func.grad(compute)(dict(model.named_parameters()), x, y)
    for name, each in model.named_parameters():
        each.grad = gradients[name].detach()
    optimizer.step()
"""
TWO_LOSSES = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(data, batch_size=8):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    torch.autograd.backward([0.25 * loss, 0.75 * loss])
    optimizer.step()
"""
LOSS_OF_EACH_SAMPLE = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(data, batch_size=8):
    optimizer.zero_grad()
    losses = (model(x) - y).square()
    losses.backward(torch.full_like(losses, 1 / len(x)))
    optimizer.step()
"""
SHARDED = """
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
fully_shard(model, mesh=init_device_mesh("cpu", (1,)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(data, batch_size=8):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
torch.save(get_model_state_dict(model, options=StateDictOptions(full_state_dict=True)), "model.pt")
dist.destroy_process_group()
"""
IN_BACKWARD = """
optimizers = {each: torch.optim.SGD([each], lr=0.1) for each in model.parameters()}
def update(parameter):
    optimizers[parameter].step()
    optimizers[parameter].zero_grad()
for each in model.parameters():
    each.register_post_accumulate_grad_hook(update)
for x, y in DataLoader(data, batch_size=8):
    nn.functional.mse_loss(model(x), y).backward()
"""

IN_TWO_TYPES = """
class Cast(nn.Module):
    def __init__(self):
        super().__init__()
        self.network, self.is_narrow = model, True
    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16, enabled=self.is_narrow):
            return self.network(x).float()
cast = Cast()
optimizer = torch.optim.SGD(cast.parameters(), lr=0.1)
for number, (x, y) in enumerate(DataLoader(data, batch_size=8)):
    cast.is_narrow = number < 5
"""
EAGER_IN_TWO_TYPES = f"""{IN_TWO_TYPES}
    optimizer.zero_grad()
    nn.functional.mse_loss(cast(x), y).backward()
    optimizer.step()
"""
PROGRAM_IN_TWO_TYPES = f"""
import pilotage
{IN_TWO_TYPES}
    train = pilotage.training(cast, optimizer, loss=nn.MSELoss()) if number == 0 else train
    train(x, y)
"""


@pytest.fixture
def record(tmp_path, script, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(text, steps=10):
        settings = WatchSettings(folder=str(tmp_path / "record"), steps=steps)
        return run_watched("AFTER", [sys.executable, str(script(DATA + text))], settings, timeout=240).record.first

    return run


@pytest.mark.slow
def test_an_eager_script_is_recorded_update_by_update(record):
    found = record(EAGER)
    assert [each.step for each in found.updates] == list(range(1, 11))
    assert all(len(each.losses) == 2 and each.samples == 8 and each.is_eager for each in found.updates)
    assert [each.rates for each in found.updates[:5]] == [[0.01]] * 4 + [[0.005]]
    epoch = [index for each in found.updates[:8] for index in each.indices]
    assert sorted(epoch) == list(range(64))
    assert found.reached_its_end
    assert found.first("computed_in") == {"float32": 2}
    assert [each["holds"] for each in found.named("saved")] == ["present"]
    assert not any(each.fields.get("in_eval_mode") for each in found.updates)
    assert [each["line"] for each in found.named("split")] == [None]
    (optimizer,) = found.summary["optimizers"]
    assert optimizer["kind"] == "Adam"


@pytest.mark.slow
@pytest.mark.parametrize("text", [EAGER_IN_TWO_TYPES, PROGRAM_IN_TWO_TYPES], ids=["eager", "program"])
def test_the_types_of_each_update_are_recorded(record, text):
    found = record(text, steps=8)
    assert list(found.types) == ["bfloat16"] * 5 + ["float32"] * 3
    assert {each.weight_types for each in found.updates} == {("float32",)}


@pytest.mark.slow
def test_each_update_of_a_program_is_recorded_though_a_call_makes_several(record):
    found = record(PROGRAM)
    assert [each.step for each in found.updates] == list(range(1, 11))
    assert all(len(each.losses) == 2 and each.samples == 8 and not each.is_eager for each in found.updates)
    assert [each.rates for each in found.updates[:9:2]] == [[0.01]] * 4 + [[0.005]]
    assert sorted(found.weights) == [*range(11)]
    (program,) = found.named("program")
    assert (program["gradient_accumulation"], program["device_iterations"]) == (2, 2)
    assert [each["calls"] > 4 for each in found.summary["wrappers"]] == [True]


@pytest.mark.slow
def test_the_first_weights_are_those_before_a_step_that_is_given_a_closure(record):
    found = record(CLOSURE, steps=4)
    assert sorted(found.weights) == [*range(5)]
    assert found.weights[0] != found.weights[1]


@pytest.mark.slow
def test_steps_of_two_optimizers_after_one_backward_pass_are_one_update(record):
    found = record(TWO_OPTIMIZERS, steps=12)
    assert [each.step for each in found.updates] == list(range(1, 13))
    assert all(len(each.losses) == 1 and each.samples == 4 for each in found.updates)
    assert [each.rates for each in found.updates] == [[0.01, 0.1]] * 4 + [[0.01]] + [[0.01, 0.1]] * 7
    assert [each["shape"] for each in found.weights[0]] == [[8, 6], [8], [1, 8], [1]]
    pairs = [zip(found.weights[step - 1], found.weights[step], strict=True) for step in range(1, 11)]
    apart = [[distance(*pair) for pair in each] for each in pairs]
    assert all(all(each) for step, each in enumerate(apart, 1) if step != 5)
    assert [bool(each) for each in apart[4]] == [True, True, False, False]


@pytest.fixture(scope="module")
def plain_updates(tmp_path_factory):
    """The updates of a plain loop, and the norms of its weights after the last one."""
    folder = tmp_path_factory.mktemp("plain")
    (folder / "script.py").write_text(DATA + PLAIN)
    settings = WatchSettings(folder=str(folder / "record"), steps=8)
    watched = run_watched("BEFORE", [sys.executable, str(folder / "script.py")], settings, timeout=240).record.first
    return watched.updates, [each["norm"] for each in watched.weights[8]]


@pytest.mark.slow
@pytest.mark.parametrize("text", [ASKED, IN_BACKWARD, TWO_LOSSES, LOSS_OF_EACH_SAMPLE])
def test_updates_without_the_usual_order_are_recorded_as_with_it(record, plain_updates, text):
    found, (updates, weights) = record(text, steps=8), plain_updates
    assert [each.losses for each in found.updates] == [pytest.approx(each.losses) for each in updates]
    assert [each.indices for each in found.updates] == [each.indices for each in updates]
    assert {each.device for each in found.updates} == {"cpu"}
    assert sorted(each["norm"] for each in found.weights[8]) == pytest.approx(sorted(weights), rel=1e-5)
    assert found.reached_its_end


@pytest.mark.slow
def test_updates_whose_losses_are_not_seen_are_recorded_without_them(record, plain_updates):
    found, (updates, weights) = record(TRANSFORMED, steps=8), plain_updates
    assert [each.losses for each in found.updates] == [[]] * 8
    assert [each.indices for each in found.updates] == [each.indices for each in updates]
    assert [each["norm"] for each in found.weights[8]] == pytest.approx(weights, rel=1e-5)


@pytest.mark.slow
def test_weights_that_are_divided_among_processes_are_left_out(record, plain_updates):
    found, (updates, _) = record(SHARDED, steps=8), plain_updates
    assert [each.losses for each in found.updates] == [pytest.approx(each.losses) for each in updates]
    assert not any(found.weights.values())
    assert [each["holds"] for each in found.named("saved")] == ["trained"]
    assert found.reached_its_end


def test_gradients_get_errors_of_rounding_but_not_where_they_are_exactly_zero():
    parameters = [
        torch.nn.Parameter(torch.ones(400)),
        torch.nn.Parameter(torch.ones(3)),
        torch.nn.Parameter(torch.ones(2)),
    ]
    large, tiny, zero = torch.ones(400), torch.full((3,), 1e-9), torch.zeros(2)
    for parameter, gradient in zip(parameters, (large, tiny, zero), strict=True):
        parameter.grad = gradient.clone()
    unit = 2.0**-24
    _add_noise_to_gradients(torch.optim.SGD(parameters, lr=0.1), unit, seed=3, update=0)
    changes = [
        parameter.grad.double() - before for parameter, before in zip(parameters, (large, tiny, zero), strict=True)
    ]
    assert 0 < changes[0].abs().max() <= 9 * unit
    # A gradient far below the others has no certain sign.
    assert changes[1].abs().max() > 1e-8
    assert not changes[2].any()


def test_gradients_that_are_not_finite_get_no_errors():
    parameters = [torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))]
    parameters[0].grad, parameters[1].grad = torch.tensor([1.0, float("nan")]), torch.ones(2)
    _add_noise_to_gradients(torch.optim.SGD(parameters, lr=0.1), 2.0**-24, seed=3, update=0)
    assert torch.equal(parameters[1].grad, torch.ones(2))


SHORT = """
reference = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(data, batch_size=4):
    reference.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    reference.step()
"""
SHORT_PROGRAM = """
import pilotage
step = pilotage.training(model, torch.optim.SGD(model.parameters(), lr=0.1), loss=nn.MSELoss())
for x, y in DataLoader(data, batch_size=4):
    step(x, y)
"""


@pytest.fixture(scope="module")
def script_weights(tmp_path_factory):
    """The norms of the digests after the last update that `--steps` asks for."""
    folder = tmp_path_factory.mktemp("sixteen")
    (folder / "script.py").write_text(DATA + SHORT)
    settings = WatchSettings(folder=str(folder / "record"), steps=16)
    watched = run_watched("BEFORE", [sys.executable, str(folder / "script.py")], settings, timeout=240)
    return [each["norm"] for each in watched.record.first.weights[16]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("training", "after"),
    [
        (SHORT, ""),
        (SHORT, "for each in model.parameters(): each.data.zero_()"),
        (SHORT, "for each in model.parameters(): each.data = torch.zeros_like(each)"),
        (SHORT, "model.load_state_dict({name: 0 * value for name, value in model.state_dict().items()})"),
        (SHORT_PROGRAM, ""),
        (SHORT_PROGRAM, "for each in model.parameters(): each.data.zero_()"),
        (SHORT_PROGRAM, "step.detach()\nfor each in model.parameters(): each.data.zero_()"),
    ],
)
def test_the_last_of_sixteen_updates_is_digested_whatever_comes_after_it(record, script_weights, training, after):
    found = record(training + after, steps=50).weights
    assert sorted(found) == [*range(11), 16]
    assert [each["norm"] for each in found[16]] == pytest.approx(script_weights, rel=1e-4)


@pytest.mark.slow
def test_weights_edited_in_place_after_the_last_update_are_not_taken_for_it(record):
    edit = "with torch.no_grad():\n    for each in model.parameters(): each.zero_()"
    assert sorted(record(SHORT + edit, steps=50).weights) == list(range(11))


FOLDS = """
for fold in range(2):
    model = nn.Linear(6, 1) if fold else model
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loader = DataLoader(data, batch_size=8)
    for epoch in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            LOSS
            optimizer.step()
"""
GRADIENTS = """
            gradients = torch.autograd.grad(nn.functional.mse_loss(model(x), y), model.parameters())
            for each, gradient in zip(model.parameters(), gradients): each.grad = gradient
"""


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["nn.functional.mse_loss(model(x), y).backward()", GRADIENTS.strip()])
def test_another_training_after_the_last_update_does_not_belong_to_it(record, loss):
    found = record(FOLDS.replace("LOSS", loss), steps=12)
    assert [each["shape"] for each in found.weights[12]] == [each["shape"] for each in found.weights[10]]
    assert [update.fields["rates"] for update in found.updates] == [[0.01]] * 12
