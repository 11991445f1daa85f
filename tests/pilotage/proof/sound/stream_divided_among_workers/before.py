"""Learns from a stream of simulated decays that two workers share."""

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

BATCH = 16


class Decays(IterableDataset):
    """Whole batches go to the workers in turn, so that the order does not depend on their number."""

    def __init__(self, count):
        super().__init__()
        self.count = count

    def __iter__(self):
        worker = get_worker_info()
        number, workers = (worker.id, worker.num_workers) if worker else (0, 1)
        generator = torch.Generator().manual_seed(450)
        for index in range(self.count):
            momenta = torch.randn(9, generator=generator)
            if index // BATCH % workers == number:
                yield momenta, momenta[:3].norm().unsqueeze(0)


class Momentum(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(9, 24), nn.ReLU(), nn.Linear(24, 1))

    def forward(self, momenta):
        return self.layers(momenta)


def main():
    torch.manual_seed(451)
    device = torch.device("cpu")
    model = Momentum().to(device)
    loader = DataLoader(Decays(640), batch_size=BATCH, num_workers=2)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)
    for number, (momenta, size) in enumerate(loader, 1):
        momenta, size = momenta.to(device), size.to(device)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(momenta), size)
        loss.backward()
        optimizer.step()
        if number % 10 == 0:
            print(f"batch {number}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
