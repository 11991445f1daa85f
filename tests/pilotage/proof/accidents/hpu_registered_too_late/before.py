"""Trains a network with a custom activation, after checking its gradient."""

import torch
from torch import nn


class Swish(torch.autograd.Function):
    """x * sigmoid(x), with a gradient of its own."""

    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(context, gradient):
        (x,) = context.saved_tensors
        gate = torch.sigmoid(x)
        return gradient * (gate + x * gate * (1 - gate))


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 24)
        self.second = nn.Linear(24, 1)

    def forward(self, x):
        return self.second(Swish.apply(self.first(x)))


def check_gradient():
    x = torch.linspace(-2, 2, 7, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(Swish.apply, (x,))


def pick_device():
    return torch.device("cpu")


def train(device, steps=40, size=16):
    generator = torch.Generator().manual_seed(130)
    model = Network().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for step in range(steps):
        x = torch.randn(size, 6, generator=generator)
        y = x.abs().mean(1, keepdim=True)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: {loss.item():.5f}")


if __name__ == "__main__":
    torch.manual_seed(131)
    check_gradient()
    train(pick_device())
