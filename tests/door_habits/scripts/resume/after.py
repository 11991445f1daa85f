"""A second run that continues from the file of a first one."""

import io

import torch
from torch import nn

import pilotage

torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randint(0, 3, (64,)))
loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
saved_run = io.BytesIO()


def run(first, last):
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler}
    if first:
        saved_run.seek(0)
        for name, state in torch.load(saved_run).items():
            parts[name].load_state_dict(state)
    criterion = nn.CrossEntropyLoss()
    step = pilotage.training(model, optimizer, loss=criterion)
    for _epoch in range(first, last):
        for inputs, labels in loader:
            step(inputs, labels)
        scheduler.step()
    torch.save({name: part.state_dict() for name, part in parts.items()}, saved_run)
    return model


run(0, 1)
model = run(1, 3)
