"""Programs of the engine on the emulated card: selected by name, labelled, and equal to the CPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.slow

EXAMPLES = sorted((Path(__file__).parents[3] / "examples" / "poptorch").glob("*.py"))


def test_a_poptorch_program_gives_the_results_of_the_cpu_and_reports_the_emulation(alone):
    def program():
        import torch
        from torch import nn

        import poptorch
        from pilotage.devices.hpu import HpuBackend

        class Network(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())
                self.last = nn.Sequential(nn.Dropout(0.3), nn.Linear(144, 5))

            def forward(self, images, labels=None):
                scores = self.last(self.layers(images))
                return scores if labels is None else (scores, nn.functional.cross_entropy(scores, labels))

        def train(backend, tier):
            torch.manual_seed(0)
            network = Network()
            options = poptorch.Options().deviceIterations(2).runOn(backend, tier=tier)
            options.Training.gradientAccumulation(2)
            options.showCompilationProgressBar(False)
            training = poptorch.trainingModel(network, options, poptorch.optim.AdamW(network.parameters(), lr=0.01))
            losses = [training(torch.randn(16, 1, 8, 8), torch.randint(5, (16,)))[1].tolist() for _ in range(2)]
            return losses, {name: each.clone() for name, each in network.state_dict().items()}, training

        card_losses, card, training = train("hpu", "graph")
        session = training.engine.session
        assert session.device == "hpu (Gaudi, emulated on the CPU)"
        assert all(each.is_hpu for each in session.state.parameters.values())
        eager_losses, _, _ = train("hpu", "eager")
        host_losses, host, _ = train("cpu", "graph")
        assert card_losses == host_losses == eager_losses
        assert all(torch.equal(card[name], host[name]) for name in host)

        # As on a host with the vendor's bridge, whose compiler backend is emulated under the same name.
        HpuBackend._is_emulated = False
        compiled_losses, compiled, training = train("hpu", "graph")
        assert training.engine.session.device == "hpu"
        assert compiled_losses == host_losses
        assert all(torch.equal(compiled[name], host[name]) for name in host)

    ran = alone(program, PILOTAGE_LOG_LEVEL="DEBUG")
    assert ran.stderr.count("hpu_backend: the card would compile a graph of") == 2
    assert "Running on hpu (Gaudi, emulated on the CPU), tier graph: the backend option asks for it." in ran.stderr


@pytest.mark.skipif(torch.cuda.is_available(), reason="torch counts the CUDA device here")
def test_registering_the_device_fails_only_after_a_backward_pass(alone):
    def program():
        import os

        import pytest
        import torch

        if os.environ["BEFORE"] == "backward":
            torch.ones(1, requires_grad=True).sum().backward()
            with pytest.raises(ImportError, match=r"Import habana_frameworks.torch.core before any training"):
                import habana_frameworks.torch.core
            return
        assert not torch.accelerator.is_available()
        assert not torch.ones(1).is_pinned()
        import habana_frameworks.torch.core  # noqa: F401

        assert torch.accelerator.current_accelerator().type == "hpu"
        weight = torch.ones(2, device="hpu", requires_grad=True)
        (3 * weight).sum().backward()
        assert weight.grad.tolist() == [3, 3]
        pinned = torch.ones(4).pin_memory()
        assert pinned[2:].is_pinned()
        assert not torch.ones(4).is_pinned()

    for before in ("backward", "question"):
        alone(program, BEFORE=before)


@pytest.mark.long
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_each_poptorch_example_prints_the_same_on_the_emulated_card_and_on_the_cpu(example, tmp_path):
    def printed(backend):
        environment = {"PILOTAGE_BACKEND": backend, "PILOTAGE_TIER": "graph", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, str(example)]
        ran = subprocess.run(command, cwd=tmp_path, env={**os.environ, **environment}, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    on_card = printed("hpu")
    assert on_card
    assert on_card == printed("cpu")
