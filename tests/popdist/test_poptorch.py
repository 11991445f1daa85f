from __future__ import annotations

import pytest
import torch
from torch import nn

import popdist.poptorch
import poptorch
from pilotage.distributed.environments.poprun import poprun_variables
from pilotage.distributed.world import World

pytestmark = pytest.mark.slow


def test_without_poprun_it_is_one_process_with_one_replica():
    options = popdist.poptorch.Options(ipus_per_replica=2)
    assert isinstance(options, poptorch.Options)
    assert (options.Distributed.processId, options.Distributed.numProcesses) == (0, 1)
    assert options.replication_factor == 1


def test_under_poprun_replicas_device_and_process_are_set(monkeypatch):
    world = World(rank=2, size=4, local_rank=1, replicas_per_instance=3, stages_per_replica=2)
    for name, value in poprun_variables(world).items():
        monkeypatch.setenv(name, value)
    # poprun itself may run under mpirun, whose variables must be ignored.
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "1")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    options = popdist.poptorch.Options(ipus_per_replica=2).clone()
    assert (options.Distributed.processId, options.Distributed.numProcesses) == (2, 4)
    assert (options.replication_factor, options.ipu_id) == (3, 1)
    with pytest.raises(
        RuntimeError,
        match=r"ipus_per_replica=1, but poprun was started with 2. Pass ipus_per_replica=2,.*--ipus-per-replica 1",
    ):
        popdist.poptorch.Options()


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("useIpuId", (1,)),
        ("replicationFactor", (2,)),
        ("Distributed.disable", ()),
        ("Distributed.setEnvVarNames", ("A", "B")),
        ("Distributed.configureProcessId", (0, 1)),
        ("Distributed.configureProcessId", (1,)),
    ],
)
def test_settings_of_poprun_cannot_be_changed(method, arguments):
    subject = popdist.poptorch.Options()
    for name in method.split("."):
        subject = getattr(subject, name)
    with pytest.raises(RuntimeError) as raised:
        subject(*arguments)
    assert str(raised.value) == f"Cannot call `{method}` with popdist.poptorch.Options"


MODEL = """
import popdist.poptorch, poptorch, torch
from torch import nn

class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 3)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, x, y):
        output = self.layer(x)
        return output, self.loss(output, y)

def data():
    generator = torch.Generator().manual_seed(4)
    return torch.utils.data.TensorDataset(
        torch.randn(50, 6, generator=generator), torch.randint(3, (50,), generator=generator))

def train(options, shuffle, batch_size=2):
    torch.manual_seed(9)
    options.showCompilationProgressBar(False)
    options.Training.gradientAccumulation(2)
    options.runOn("cpu", tier="graph")
    loader = poptorch.DataLoader(options, data(), batch_size=batch_size, shuffle=shuffle)
    model = Classifier()
    wrapped = poptorch.trainingModel(model, options, poptorch.optim.SGD(model.parameters(), lr=0.2, momentum=0.5))
    seen = []
    for epoch in range(2):
        for x, y in loader:
            wrapped(x, y)
            seen += x[:, 0].tolist()
    return model.layer.weight.tolist(), seen
"""
SCRIPT = (
    MODEL
    + """
popdist.init()
options = popdist.poptorch.Options()
options.randomSeed(6)
answer(train(options, shuffle=True))
"""
)


@pytest.mark.slow
def test_two_instances_train_as_eager_pytorch_on_the_samples_of_both(poprun):
    (mine, seen), (theirs, others) = poprun(SCRIPT, "--num-replicas=4")
    assert mine == theirs
    scope: dict[str, object] = {}
    exec(MODEL, scope)
    images, labels = scope["data"]().tensors
    place = {round(image[0].item(), 5): number for number, image in enumerate(images)}
    epochs = [
        [[place[round(value, 5)] for value in each[half * 24 : half * 24 + 24]] for each in (seen, others)]
        for half in (0, 1)
    ]
    torch.manual_seed(9)
    model = scope["Classifier"]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.5)
    for first, second in epochs:
        assert len(set(first + second)) == 48, "no sample is read twice in an epoch"
        for call in range(3):
            picked = [number for each in (first, second) for number in each[call * 8 : call * 8 + 8]]
            optimizer.zero_grad()
            # Micro-batches are equally large, so that the mean of their means is the mean of all.
            nn.functional.cross_entropy(model.layer(images[picked]), labels[picked]).backward()
            optimizer.step()
    torch.testing.assert_close(torch.tensor(mine), model.layer.weight.detach(), rtol=1e-5, atol=1e-6)


def test_a_process_that_expects_others_explains_how_to_start_them():
    options = poptorch.Options().runOn("cpu", tier="graph").showCompilationProgressBar(False)
    options.Distributed.configureProcessId(0, 2)
    scope: dict[str, object] = {}
    exec(MODEL, scope)
    model = scope["Classifier"]()
    wrapped = poptorch.trainingModel(model, options, poptorch.optim.SGD(model.parameters(), lr=0.1))
    with pytest.raises(poptorch.Error, match=r"rank 0 of 2 \(set by the options\).*MASTER_ADDR.*poprun"):
        wrapped(torch.ones(2, 6), torch.zeros(2, dtype=torch.long))
