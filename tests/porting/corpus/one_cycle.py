"""A schedule that is stepped after every batch."""
import torch
from torch import nn, optim
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 2
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


def get_loader(count, batch_size):
    signal = torch.randn(count, 1, 32)
    return DataLoader(TensorDataset(signal, (signal.var(2).squeeze(1) > 1).float()), batch_size=batch_size, shuffle=True)


def fit(model, loader, loss_fn, optimizer, scheduler):
    history = []
    for epoch in range(EPOCHS):
        for signal, label in loader:
            signal, label = signal.to(device), label.to(device)
            optimizer.zero_grad()
            logits = model(signal).squeeze(1)
            loss = loss_fn(logits, label)
            loss.backward()
            optimizer.step()
            scheduler.step()
            history.append((loss.item(), scheduler.get_last_lr()[0]))
        print(f"epoch {epoch}: loss {history[-1][0]:.4f}, rate {history[-1][1]:.5f}")
    return history


torch.manual_seed(5)
train_loader = get_loader(96, 16)
model = nn.Sequential(nn.Conv1d(1, 4, 5), nn.ReLU(), nn.AdaptiveMaxPool1d(4), nn.Flatten(), nn.Linear(16, 1)).to(device)
optimizer = optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
scheduler = OneCycleLR(optimizer, max_lr=0.1, steps_per_epoch=len(train_loader), epochs=EPOCHS)
fit(model, train_loader, nn.BCEWithLogitsLoss(), optimizer, scheduler)
