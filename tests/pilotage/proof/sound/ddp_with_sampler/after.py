# prove: --after-command "torchrun --standalone --nproc-per-node 2 {after}"
"""Learns to play rock, paper, scissors from past rounds, with two processes."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

ROUNDS = 5


def games(count):
    generator = torch.Generator().manual_seed(330)
    moves = torch.randint(3, (count, ROUNDS), generator=generator)
    following = (moves[:, -1] + moves[:, -2] + 1) % 3
    return TensorDataset(nn.functional.one_hot(moves, 3).float().flatten(1), following)


class Player(nn.Module):
    """Guesses the next move."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3 * ROUNDS, 32), nn.ReLU(), nn.Linear(32, 3))

    def forward(self, moves):
        return self.layers(moves)


def train(model, loader, optimizer):
    total, count = 0.0, 0
    for moves, following in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(moves), following)
        loss.backward()
        optimizer.step()
        total, count = total + loss.item(), count + 1
    return total / count


def main():
    torch.manual_seed(331)
    data = games(320)
    model = DistributedDataParallel(Player())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loader = DataLoader(data, batch_size=32 // dist.get_world_size(), sampler=DistributedSampler(data, shuffle=False))
    for epoch in range(3):
        loss = torch.tensor(train(model, loader, optimizer))
        dist.all_reduce(loss)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: {loss.item() / dist.get_world_size():.4f}")
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), "player.pt")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
