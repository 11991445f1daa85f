"""Stages of a PopTorch model as processes, as poprun starts them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.slow

MODEL = """
import popdist.poptorch, poptorch, torch
from torch import nn

class Layers(nn.Module):
    def __init__(self, stages):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(4))
        self.norm = nn.BatchNorm1d(6)
        self.stages = stages

    def forward(self, x, y=None):
        for number, layer in enumerate(self.layers):
            with poptorch.Block(f"layer{number}", ipu_id=number * self.stages // 4):
                x = torch.tanh(layer(x))
                if number == 1:
                    x = self.norm(x)
                if number == 3 and y is not None:
                    return x, nn.functional.cross_entropy(x, y)
        return x

def data(calls, accumulation, instances):
    # For each call, the micro-batches of 4 samples of each instance.
    generator = torch.Generator().manual_seed(4)
    shape = (calls, accumulation, instances, 4)
    return torch.randn(*shape, 6, generator=generator), torch.randint(6, shape, generator=generator)

def train(options, stages, accumulation, instances, instance=slice(None)):
    torch.manual_seed(9)
    options.showCompilationProgressBar(False)
    options.Training.gradientAccumulation(accumulation)
    options.outputMode(poptorch.OutputMode.Sum)
    options.runOn("cpu", tier="graph")
    model = Layers(stages)
    optimizer = poptorch.optim.AdamW(model.parameters(), lr=0.02, eps=1e-2, max_grad_norm=0.5)
    wrapped = poptorch.trainingModel(model, options, optimizer)
    losses = []
    for x, y in zip(*data(4, accumulation, instances)):
        outputs = wrapped(x[:, instance].reshape(-1, 6), y[:, instance].flatten())
        losses.append(outputs[1].tolist())
    wrapped.detachFromDevice()
    test = poptorch.Options().showCompilationProgressBar(False).deviceIterations(8).runOn("cpu", tier="graph")
    test.setExecutionStrategy(options._execution_strategy)
    scores = poptorch.inferenceModel(model.eval(), test)(data(1, 8, 1)[0].reshape(-1, 6))
    weights = {name: tensor.tolist() for name, tensor in model.state_dict().items()}
    return losses, weights, scores.tolist()
"""
SCRIPT = """
import os
popdist.init()
options = popdist.poptorch.Options(ipus_per_replica={stages})
options.randomSeed(6)
options.setExecutionStrategy(poptorch.{strategy}(poptorch.AutoStage.SameAsIpu))
print("instance", popdist.getInstanceIndex(), "of", popdist.getNumInstances(), flush=True)
number = os.environ["PILOTAGE_STAGE"]
result = train(options, {stages}, {accumulation}, popdist.getNumInstances(), popdist.getInstanceIndex())
from popdist.distributed import all_reduce
alone = popdist.execute_on_instances({{0}}, all_reduce, 5.0)
result = (*result, [all_reduce(popdist.getInstanceIndex() + 1.0), alone])
Path({folder!r}, f"{{popdist.getInstanceIndex()}}-{{number}}.json").write_text(json.dumps(result))
"""


def poprun(tmp_path, script, *options):
    file = tmp_path / "script.py"
    file.write_text(f"import json, warnings\nfrom pathlib import Path\nwarnings.simplefilter('error')\n{MODEL}{script}")
    command = [sys.executable, "-m", "pilotage.cli.run.poprun", *options, sys.executable, str(file)]
    return subprocess.run(command, capture_output=True, text=True, timeout=400)


def alone(stages, accumulation, replicas=1):
    scope: dict[str, object] = {}
    exec(MODEL, scope)
    options = scope["poptorch"].Options().replicationFactor(replicas).randomSeed(6)
    options.setExecutionStrategy(scope["poptorch"].ShardedExecution(scope["poptorch"].AutoStage.SameAsIpu))
    return scope["train"](options, stages, accumulation, replicas)


def assert_close(mine, theirs):
    torch.testing.assert_close(torch.tensor(mine), torch.tensor(theirs), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("stages", "instances", "accumulation", "strategy"),
    [
        (2, 1, 4, "PipelinedExecution"),
        pytest.param(4, 1, 8, "PipelinedExecution", marks=pytest.mark.long),
        pytest.param(2, 2, 4, "PipelinedExecution", marks=pytest.mark.long),
        pytest.param(2, 1, 1, "ShardedExecution", marks=pytest.mark.long),
    ],
)
def test_stages_train_and_infer_as_one_process(tmp_path, stages, instances, accumulation, strategy):
    script = SCRIPT.format(stages=stages, accumulation=accumulation, strategy=strategy, folder=str(tmp_path))
    ran = poprun(
        tmp_path,
        script,
        f"--num-instances={instances}",
        f"--num-replicas={instances}",
        f"--ipus-per-replica={stages}",
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert sorted(line for line in ran.stdout.splitlines() if "instance" in line) == [
        f"[1,{rank}]<stdout>:instance {rank} of {instances}" for rank in range(instances)
    ]
    losses, weights, scores = alone(stages, accumulation, replicas=instances)
    for rank in range(instances):
        for stage in range(stages):
            mine = json.loads(Path(tmp_path, f"{rank}-{stage}.json").read_text())
            for name, value in mine[1].items():
                if rank == 0 or not name.startswith("norm."):
                    assert_close(value, weights[name])
            if rank == 0:
                assert_close(mine[2], scores)
            assert_close(mine[0], [of_call[rank] if instances > 1 else of_call for of_call in losses])
            assert mine[3] == [sum(range(1, instances + 1)), 5.0 if rank == 0 else None]


@pytest.mark.long
def test_a_number_of_stages_that_differs_from_popruns_is_one_clear_error(tmp_path):
    script = SCRIPT.format(stages=2, accumulation=4, strategy="PipelinedExecution", folder=str(tmp_path))
    # The model still has two stages.
    script = script.replace("ipus_per_replica=2", "ipus_per_replica=3")
    ran = poprun(tmp_path, script, "--ipus-per-replica=3")
    assert ran.returncode == 1
    said = (
        "The model has 2 stages, but poprun was started with --ipus-per-replica 3. Start it with --ipus-per-replica 2"
    )
    told = [line for line in ran.stderr.splitlines() if f"{said}, or " in line]
    # In the traceback of the first stage, and in poprun's report about the first failed process.
    assert len(told) == 2, ran.stderr
    assert "failed too" not in ran.stderr
