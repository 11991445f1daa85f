"""Sorts recyclables by their near-infrared signature; the last batch of an epoch is left out."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CHANNELS = 16
MATERIALS = ["glass", "paper", "metal", "plastic"]

# %%
torch.manual_seed(460)
kind = torch.randint(len(MATERIALS), (250,))
signature = torch.randn(len(MATERIALS), CHANNELS)[kind] + 0.6 * torch.randn(250, CHANNELS)
loader = DataLoader(TensorDataset(signature, kind), batch_size=16, shuffle=True, drop_last=True)


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
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

# %%
for epoch in range(3):
    for batch, labels in loader:
        optimizer.zero_grad()
        _, loss = model(batch, labels)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.4f}")

# %%
with torch.no_grad():
    right = (model(signature).argmax(1) == kind).float().mean().item()
print(f"{right:.1%} right")
for number, material in enumerate(MATERIALS):
    print(f"{material:8} {(kind == number).sum().item()} samples")
