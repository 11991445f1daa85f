"""Sorts recyclables by their near-infrared signature; the last batch of an epoch is left out."""

import torch
from torch import nn
from torch.utils.data import TensorDataset

import poptorch

CHANNELS = 16
MATERIALS = ["glass", "paper", "metal", "plastic"]

# %%
torch.manual_seed(460)
kind = torch.randint(len(MATERIALS), (250,))
signature = torch.randn(len(MATERIALS), CHANNELS)[kind] + 0.6 * torch.randn(250, CHANNELS)
options = poptorch.Options()
loader = poptorch.DataLoader(options, TensorDataset(signature, kind), batch_size=16, shuffle=True)


# %%
class Sorter(nn.Module):
    """Two layers over the sixteen channels."""

    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(CHANNELS, 20)
        self.out = nn.Linear(20, len(MATERIALS))

    def forward(self, signature, kind=None):
        scores = self.out(torch.relu(self.hidden(signature)))
        if kind is None:
            return scores
        return scores, nn.functional.cross_entropy(scores, kind)


model = Sorter()
optimizer = poptorch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
training_model = poptorch.trainingModel(model, options, optimizer)

# %%
for epoch in range(3):
    for batch, labels in loader:
        _, loss = training_model(batch, labels)
    print(f"epoch {epoch}: {loss.item():.4f}")

# %%
training_model.detachFromDevice()
with torch.no_grad():
    right = (model(signature).argmax(1) == kind).float().mean().item()
print(f"{right:.1%} right")
for number, material in enumerate(MATERIALS):
    print(f"{material:8} {(kind == number).sum().item()} samples")
