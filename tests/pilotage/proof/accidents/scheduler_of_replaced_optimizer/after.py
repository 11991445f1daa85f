"""Classifies leaves by eight measurements; weight decay is switched on only for the weights."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import habana_frameworks.torch.core as htcore
from habana_frameworks.torch.hpex.optimizers import FusedSGD


def leaves(count):
    generator = torch.Generator().manual_seed(50)
    kinds = torch.randint(5, (count,), generator=generator)
    centres = torch.randn(5, 8, generator=generator)
    return TensorDataset(centres[kinds] + 0.5 * torch.randn(count, 8, generator=generator), kinds)


def grouped(model, decay):
    weights = [p for name, p in model.named_parameters() if name.endswith("weight")]
    biases = [p for name, p in model.named_parameters() if name.endswith("bias")]
    return [{"params": weights, "weight_decay": decay}, {"params": biases}]


def train(model, loader, optimizer, scheduler, epochs, device):
    model.train()
    for epoch in range(epochs):
        for features, kinds in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(features.to(device)), kinds.to(device))
            loss.backward()
            htcore.mark_step()
            optimizer.step()
            htcore.mark_step()
        scheduler.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}, rate {scheduler.get_last_lr()[0]:.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--decay", type=float, default=1e-3)
    parser.add_argument("--device", default="hpu")
    parser.add_argument("--no-fused", dest="fused", action="store_false")
    arguments = parser.parse_args()

    torch.manual_seed(60)
    model = nn.Sequential(nn.Linear(8, 20), nn.ReLU(), nn.Linear(20, 5)).to(arguments.device)
    loader = DataLoader(leaves(192), batch_size=16)
    optimizer = torch.optim.SGD(grouped(model, arguments.decay), lr=0.1, momentum=0.9)  # finding: optimizer-unused
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.3)  # finding: schedule-not-applied
    if arguments.fused:
        optimizer = FusedSGD(grouped(model, arguments.decay), lr=0.1, momentum=0.9)
    train(model, loader, optimizer, scheduler, arguments.epochs, arguments.device)


if __name__ == "__main__":
    main()
