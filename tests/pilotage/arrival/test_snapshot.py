import torch
from torch import nn

from pilotage.arrival.snapshot import Snapshot, outcome_of
from pilotage.execution.random_streams import RandomStreams
from pilotage.execution.state import DeviceState
from pilotage.optim.reading import read_optimizer
from pilotage.program.layout import StateLayout

CPU = torch.device("cpu")


def state_of(module, replicas=2):
    optimizer = torch.optim.Adam(module.parameters())
    plan = read_optimizer(optimizer, {id(parameter): name for name, parameter in module.named_parameters()})
    state = DeviceState(StateLayout.of(module, plan), plan, CPU, replicas, pools=True)
    state.load_weights(dict(module.named_parameters()), dict(module.named_buffers()))
    return state


@torch.no_grad()
def test_everything_can_be_put_back():
    module = nn.BatchNorm1d(3)
    state, streams = state_of(module), RandomStreams(CPU, [1, 2])
    before, drawn = outcome_of(state, [], trains=True), streams.states
    snapshot = Snapshot(state, streams)
    for tensor in state.everything():
        tensor.add_(1)
    state.flat_gradients.fill_(3)
    with streams.of_replica(1):
        torch.randn(2)
    snapshot.restore()
    after = outcome_of(state, [], trains=True)
    torch.testing.assert_close(vars(after), vars(before), rtol=0, atol=0)
    assert not state.flat_gradients.any()
    assert all(map(torch.equal, streams.states, drawn))


def test_a_step_begins_with_the_weights_of_the_host():
    module = nn.BatchNorm1d(3)
    state = state_of(module)
    start = Snapshot(state, RandomStreams(CPU)).start(module, trains=True)
    with torch.no_grad():
        state.parameters["weight"].fill_(9)
        module.weight.fill_(7)
    assert start.parameters["weight"].tolist() == [1, 1, 1]
    assert start.trainable == {"weight", "bias"}
    assert set(start.buffers) == {0, 1}


def test_a_step_of_instances_begins_with_the_weights_of_all_stages():
    module = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    first = state_of(module[0], replicas=1)
    elsewhere = {name: torch.full_like(each, 5) for name, each in module.state_dict().items()}
    start = Snapshot(first, RandomStreams(CPU)).start(module, trains=True, on_device=elsewhere)
    assert all((tensor == 5).all() for tensor in start.parameters.values())
    assert all((tensor == 5).all() for tensor in start.buffers[0].values())
    assert start.parameters["1.weight"] is not elsewhere["1.weight"]
