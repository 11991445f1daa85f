"""Scripts in the form of Habana's model references and of the port of CosmicTagger, unchanged."""

import pytest

pytestmark = pytest.mark.slow


def test_a_gaudi_script_gives_the_losses_of_its_cpu_version(alone):
    def program():
        import contextlib
        import os

        import torch
        from torch import nn

        os.environ["PT_HPU_LAZY_MODE"] = "1"
        import habana_frameworks.torch.core as htcore
        from habana_frameworks.tensorflow import load_habana_module

        load_habana_module()

        # Like the port of CosmicTagger: variables select the card, then the process group is created.
        import habana_frameworks.torch.distributed.hccl  # noqa: F401

        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
        os.environ["ID"] = os.environ["LOCAL_RANK"] = str(0 % 8)
        torch.distributed.init_process_group(backend="hccl", rank=0, world_size=1)

        class Trainer:
            def __init__(self, compute_mode):
                self.compute_mode = compute_mode
                self.device = torch.device("hpu") if compute_mode == "HPU" else torch.device("cpu")
                torch.manual_seed(1)
                layers = nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10)
                self.network = nn.Sequential(*layers)
                self.network(torch.zeros(1, 1, 8, 8))
                self.network = self.network.to(self.device)
                self.optimizer = torch.optim.AdamW(self.network.parameters(), lr=1e-3)

            def precision(self):
                if self.compute_mode == "HPU":
                    return torch.autocast(device_type="hpu", dtype=torch.bfloat16, enabled=False)
                return contextlib.nullcontext()

            def train(self, loader):
                losses = []
                for images, labels in loader:
                    images = images.to(self.device, non_blocking=True)
                    labels = labels.to(self.device, non_blocking=True)
                    self.optimizer.zero_grad(set_to_none=True)
                    with self.precision():
                        loss = nn.functional.cross_entropy(self.network(images), labels)
                    loss.backward()
                    if self.compute_mode == "HPU":
                        htcore.mark_step()
                    self.optimizer.step()
                    if self.compute_mode == "HPU":
                        htcore.mark_step()
                    losses.append(loss.item())
                return losses

        torch.manual_seed(2)
        data = torch.utils.data.TensorDataset(torch.randn(32, 1, 8, 8), torch.randint(10, (32,)))
        loader = torch.utils.data.DataLoader(data, batch_size=8)
        losses = {mode: Trainer(mode).train(loader) for mode in ("CPU", "HPU")}
        assert len(losses["HPU"]) == 4
        assert losses["CPU"] == losses["HPU"]
        torch.distributed.destroy_process_group()

    ran = alone(program)
    assert "TensorFlow stays on the CPU" in ran.stderr
    assert "Lazy mode would have run" in ran.stderr
