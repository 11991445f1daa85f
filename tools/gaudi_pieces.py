"""Small programs for the emulated Gaudi on a CUDA card, each testing one part of the emulation."""

from __future__ import annotations

_BEGINNING = """
import torch
from torch import nn
from torch.nn import functional
import habana_frameworks.torch.core as htcore

def same(program, tolerance=1e-5):
    found = []
    for device in ("hpu", "cpu"):
        torch.manual_seed(1)
        found.append([each.detach().float().cpu() for each in program(device)])
    torch.testing.assert_close(*found, rtol=tolerance, atol=tolerance)
"""

PIECES = {
    "the accelerator is the card": 'assert torch.accelerator.current_accelerator().type == "hpu"',
    "memory, copies and reading": """
pinned = torch.arange(6.0).pin_memory()
assert pinned.is_pinned()
card = pinned.to("hpu", non_blocking=True)
assert card.view(2, 3)[1].tolist() == [3.0, 4.0, 5.0] and card.sum().item() == 15
assert torch.zeros(3, device="hpu").resize_(1000)[:3].tolist() == [0.0, 0.0, 0.0]
""",
    "arithmetic": "same(lambda device: [torch.arange(9.0, device=device).view(3, 3) @ torch.ones(3, 3).to(device)])",
    "backward of a linear layer": """
def program(device):
    layer = nn.Linear(8, 4).to(device)
    layer(torch.ones(2, 8).to(device)).square().sum().backward()
    return layer.weight.grad, layer.bias.grad
same(program)
""",
    "convolution and batch norm": """
def program(device):
    layers = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.LeakyReLU(), nn.MaxPool2d(2)).to(device)
    layers(torch.randn(2, 3, 16, 16).to(device)).square().sum().backward()
    return layers[0].weight.grad, layers[1].weight.grad, layers[1].running_mean
same(program, 1e-3)
""",
    "attention in three types": """
for dtype in (torch.float32, torch.bfloat16, torch.float16):
    def program(device):
        states = [torch.randn(2, 4, 32, 24).to(device, dtype).requires_grad_() for _ in range(3)]
        attended = functional.scaled_dot_product_attention(*states, is_causal=True)
        attended.sum().backward()
        return attended, states[0].grad
    same(program, 3e-2)
""",
    "random numbers of the CPU": """
torch.manual_seed(2)
expected = functional.dropout(torch.ones(50), 0.3)
torch.manual_seed(2)
assert torch.equal(functional.dropout(torch.ones(50, device="hpu"), 0.3).cpu(), expected)
""",
    "mixed precision": """
with torch.autocast("hpu", torch.bfloat16):
    assert nn.Linear(8, 8).to("hpu")(torch.ones(2, 8, device="hpu")).dtype is torch.bfloat16
""",
    "an HPU graph": """
module = torch.hpu.wrap_in_hpu_graph(nn.Linear(4, 4).to("hpu").eval())
with torch.no_grad():
    one, two = (module(torch.full((2, 4), value, device="hpu")) for value in (1.0, 2.0))
assert not torch.equal(one.cpu(), two.cpu())
""",
    "collectives of one process": """
import torch.distributed as dist
import habana_frameworks.torch.distributed.hccl
dist.init_process_group("hccl", init_method="tcp://127.0.0.1:0", rank=0, world_size=1)
total = torch.full((3,), 2.0, device="hpu")
dist.all_reduce(total)
dist.broadcast(total, 0)
gathered = [torch.zeros(3, device="hpu")]
dist.all_gather(gathered, total)
model = nn.parallel.DistributedDataParallel(nn.Linear(3, 1).to("hpu"))
model(gathered[0][None]).sum().backward()
assert model.module.weight.grad.tolist() == [[2.0, 2.0, 2.0]]
dist.destroy_process_group()
""",
}
"""Programs by what they test."""


def program(piece: str) -> str:
    """The program of a piece. It compares with the CPU, because backward on CUDA fails beside another accelerator."""
    return _BEGINNING + PIECES[piece]
