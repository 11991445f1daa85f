# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Faster in five lines
#
# A plain training loop, the same loop as one program, and the loop inside of the program: how fast is each, and are
# the weights the same?

# %%
import platform
import statistics
import time
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import pilotage

torch.set_num_threads(1)


def processor() -> str:
    description = Path("/proc/cpuinfo")
    lines = description.read_text().splitlines() if description.exists() else []
    names = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    return f"{names[0]}, {len(names)} cores" if names else platform.machine()


device = torch.cuda.get_device_name() if torch.cuda.is_available() else processor()
print(f"{device}; Python {platform.python_version()}")
print(f"torch {torch.__version__}, Pilotage {pilotage.__version__}")

# %% [markdown]
# ## Data and a model
#
# A small convolutional network and 3,200 small pictures. Small models gain most, because Python takes a large part of
# their time.

# %%
torch.manual_seed(0)
labels = torch.randint(4, (3200,))
images = torch.randn(3200, 1, 16, 16) + labels.reshape(-1, 1, 1, 1) / 2
dataset = TensorDataset(images, labels)
criterion = nn.CrossEntropyLoss()


def new_model() -> nn.Module:
    torch.manual_seed(1)
    features = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2))
    return nn.Sequential(features, nn.Flatten(), nn.Linear(392, 4))


# %% [markdown]
# ## Three loops
#
# The plain loop has five lines for a step. The second has one call for a step. The third has one call for twenty steps.


# %%
def plain(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[float]:
    losses = []
    for batch, targets in DataLoader(dataset, batch_size=16):
        optimizer.zero_grad()
        loss = criterion(model(batch), targets)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def one_call_a_step(step: pilotage.CompiledModel) -> list[float]:
    batches = DataLoader(dataset, batch_size=16)
    return [float(step(batch, targets)[1]) for batch, targets in batches]


def twenty_steps_a_call(step: pilotage.CompiledModel) -> list[float]:
    losses = []
    for batches, targets in DataLoader(dataset, batch_size=20 * 16):
        losses += step(batches, targets)[1].tolist()
    return losses


# %%
def prepared(name: str):
    """A model, and the function that trains it for an epoch."""
    model = new_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    if name == "plain loop":
        return model, lambda: plain(model, optimizer)
    if name == "one call for a step":
        step = pilotage.training(model, optimizer, loss=criterion)
        return model, lambda: one_call_a_step(step)
    step = pilotage.training(model, optimizer, loss=criterion, device_iterations=20, outputs="all")
    return model, lambda: twenty_steps_a_call(step)


NAMES = ("plain loop", "one call for a step", "twenty steps for a call")
loops = {name: prepared(name) for name in NAMES}

# %% [markdown]
# ## How fast?
#
# The loops take turns, so that a busy moment of the machine hits all of them. The first epoch is not counted: it
# captures the program and compares it with eager PyTorch.

# %%
EPOCHS = 6
seconds = {name: [] for name in NAMES}
losses = {name: [] for name in NAMES}
for _ in range(1 + EPOCHS):
    for name, (_, epoch) in loops.items():
        began = time.perf_counter()
        losses[name] += epoch()
        seconds[name].append(time.perf_counter() - began)

usual = statistics.median(seconds["plain loop"][1:])
for name in NAMES:
    rates = [200 / each for each in seconds[name][1:]]
    factor = usual / statistics.median(seconds[name][1:])
    print(f"{name:24} {statistics.median(rates):5.0f} steps/s: {factor:.2f} x", end="")
    print(f"   ({min(rates):.0f} to {max(rates):.0f} steps/s in {EPOCHS} epochs)")

# %% [markdown]
# ## The same?

# %%
reference = loops["plain loop"][0].state_dict()
for name in NAMES[1:]:
    found = loops[name][0].state_dict()
    largest = max((found[key] - value).abs().max().item() for key, value in reference.items())
    steps = len(losses[name])
    print(f"{name}: after {steps} steps the weights differ by at most {largest:.1e}")

# %%
figure, axes = plt.subplots(figsize=(7, 2.8), layout="constrained")
for name, width in zip(NAMES, (7, 4, 1.5), strict=True):
    means = torch.tensor(losses[name]).reshape(-1, 20).mean(1)
    axes.plot(20 * torch.arange(len(means)), means, linewidth=width, label=name)
axes.set(xlabel="step", ylabel="loss")
axes.legend(frameon=False)
plt.show()
