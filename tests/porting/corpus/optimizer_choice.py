"""The optimizer is chosen by its name."""
import argparse

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--optimizer", default="adamw")
parser.add_argument("--lr", type=float, default=0.01)
args = parser.parse_args()


def make_optimizer(name, parameters, lr):
    if name == "sgd":
        return optim.SGD(parameters, lr=lr, momentum=0.9, nesterov=True)
    if name == "adam":
        return optim.Adam(parameters, lr=lr)
    if name == "adamw":
        return optim.AdamW(parameters, lr=lr, weight_decay=0.05)
    if name == "rmsprop":
        return optim.RMSprop(parameters, lr=lr, centered=True)
    if name == "adadelta":
        return optim.Adadelta(parameters, lr=100 * lr)
    if name == "adagrad":
        return optim.Adagrad(parameters, lr=lr, lr_decay=0.01)
    if name == "adamax":
        return optim.Adamax(parameters, lr=lr)
    if name == "nadam":
        return optim.NAdam(parameters, lr=lr)
    if name == "radam":
        return optim.RAdam(parameters, lr=lr)
    if name == "rprop":
        return optim.Rprop(parameters, lr=lr)
    if name == "asgd":
        return optim.ASGD(parameters, lr=lr)
    if name == "adafactor":
        return optim.Adafactor(parameters, lr=lr)
    raise ValueError(f"unknown optimizer {name}")


torch.manual_seed(95)
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
x = torch.randn(70, 6)
train_loader = DataLoader(TensorDataset(x, torch.sin(x).sum(1, keepdim=True)), batch_size=14, shuffle=True)
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1)).to(device)
criterion = nn.MSELoss()
optimizer = make_optimizer(args.optimizer, model.parameters(), args.lr)
scheduler = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=10 * args.lr, total_steps=10, cycle_momentum=False)
for epoch in range(2):
    for inputs, targets in train_loader:
        inputs, targets = inputs.to(device), targets.to(device)
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        scheduler.step()
    print(epoch, loss.item())
