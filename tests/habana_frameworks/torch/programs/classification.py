"""A small residual network on generated pictures with LARS, HPU graphs, an average of its weights and a profile."""

import json
import sys

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import TensorDataset

import habana_frameworks.torch as ht
import habana_frameworks.torch.core as htcore
import habana_frameworks.torch.hpu.graphs as htgraphs
from habana_dataloader import HabanaDataLoader
from habana_frameworks.torch.hpex.movingavrg import FusedEMA
from habana_frameworks.torch.hpex.optimizers import FusedLars, FusedResourceApplyMomentum


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)

    def forward(self, images):
        return functional.relu(self.norm(self.conv(images)) + images)


def lars(model):
    parameters, mask = [], []
    for name, parameter in model.named_parameters():
        parameters.append(parameter)
        mask.append(not (name.endswith("bias") or parameter.dim() == 1))
    inner = FusedResourceApplyMomentum(parameters, lr=2.0, momentum=0.9, weight_decay=5e-5)
    return FusedLars(inner, mask, eps=0.0)


def train(with_graphs):
    torch.manual_seed(5)
    layers = nn.Conv2d(3, 8, 3, padding=1), Block(8), nn.MaxPool2d(2), Block(8), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    model = nn.Sequential(*layers, nn.Linear(8, 4)).to("hpu")
    if with_graphs:
        htgraphs.ModuleCacher(max_graphs=4)(model=model)
    optimizer, average = lars(model), FusedEMA(model, decay=0.9)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.9**epoch)
    labels = torch.arange(64) % 4
    pictures = (
        torch.randn(64, 3, 12, 12) * 0.3 + labels[:, None, None, None] * torch.tensor([1.0, -0.5, 0.2])[:, None, None]
    )
    loader = HabanaDataLoader(TensorDataset(pictures, labels), batch_size=16)
    losses = []
    for _ in range(4):
        model.train()
        for images, targets in loader:
            images, targets = images.to("hpu", non_blocking=True), targets.to("hpu", non_blocking=True)
            loss = functional.cross_entropy(model(images), targets)
            optimizer.zero_grad()
            loss.backward()
            htcore.mark_step()
            optimizer.step()
            htcore.mark_step()
            average.update(model)
            losses.append(loss.item())
        schedule.step()
    with torch.no_grad():
        right = average.ema(pictures.to("hpu")).argmax(1).eq(labels.to("hpu")).float().mean().item()
    return losses, right


activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.HPU]
with torch.profiler.profile(
    activities=activities, on_trace_ready=torch.profiler.tensorboard_trace_handler(sys.argv[1])
) as profile:
    losses, right = train(with_graphs=True)
plain, _ = train(with_graphs=False)
compiled = dict(ht.hpu.metrics.metric_global("graph_compilation").stats())["TotalNumber"]
print(json.dumps({"losses": losses, "plain": plain, "right": right, "compiled": compiled}))
assert any("convolution" in each.key for each in profile.key_averages())
