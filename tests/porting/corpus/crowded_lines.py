#!/usr/bin/env python3
"""Fine-tune the head of a deep network; evaluation on a held-out set."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Deep(nn.Module):
    def __init__(self, depth=4, width=16, *, use_dropout: bool = False):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.head = nn.Linear(width, 2)

    def forward(self, x):
        for block in self.blocks:
            x = x + torch.relu(block(x))
        return self.head(x)


class Wrapped(nn.Module):
    def __init__(self, model, criterion):
        super().__init__()
        self.model, self.criterion = model, criterion

    def forward(self, *args, labels=None):
        output = self.model(*args)
        return output if labels is None else (output, self.criterion(output, labels))


torch.manual_seed(21)
x = torch.randn(96, 16); y = (x[:, 0] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=12, shuffle=True)
wrapped = Wrapped(Deep(), nn.CrossEntropyLoss())
if torch.cuda.is_available(): wrapped = wrapped.cuda()
for p in wrapped.model.blocks[:2].parameters(): p.requires_grad = False
optimizer = torch.optim.Adagrad(filter(lambda p: p.requires_grad, wrapped.parameters()), lr=0.05)
wrapped.train()
for epoch in range(2):
    running = 0.0
    for step, (data, target) in enumerate(loader, start=1):
        if torch.cuda.is_available(): data, target = data.cuda(), target.cuda()
        optimizer.zero_grad(); _, loss = wrapped(data, labels=target); loss.backward(); optimizer.step()
        running += loss.item()
    print(f"{epoch}: {running / step:.4f}")
wrapped.eval()
if torch.cuda.is_available(): x, y = x.cuda(), y.cuda()
with torch.no_grad():
    print((wrapped(x).argmax(1) == y).float().mean().item())
