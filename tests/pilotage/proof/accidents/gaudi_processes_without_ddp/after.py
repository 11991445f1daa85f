# prove: --after-command "torchrun --standalone --nproc-per-node 2 {after}"
"""Predicts the fate of small cellular automata, on several Gaudi cards."""

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import habana_frameworks.torch.core as htcore
import habana_frameworks.torch.distributed.hccl as hccl

CELLS, RULE = 16, 110


def automata(count):
    table = torch.tensor([(RULE >> number) & 1 for number in range(8)])
    cells = torch.randint(2, (count, CELLS))
    index = 4 * cells.roll(1, 1) + 2 * cells + cells.roll(-1, 1)
    return TensorDataset(cells.float(), table[index].float())


class Automaton(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(1, 8, 3, padding=1, padding_mode="circular")
        self.conv2 = nn.Conv1d(8, 1, 1)

    def forward(self, cells):
        return self.conv2(torch.relu(self.conv1(cells.unsqueeze(1)))).squeeze(1)


def train(model, loader, device, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(epochs):
        for cells, following in loader:
            cells, following = cells.to(device), following.to(device)
            optimizer.zero_grad()
            loss = criterion(model(cells), following)
            loss.backward()
            htcore.mark_step()
            optimizer.step()  # finding: no-gradient-exchange
            htcore.mark_step()
        # The mean over the cards, for the log.
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: {mean.item() / dist.get_world_size():.4f}")


def main():
    world_size, rank, _ = hccl.initialize_distributed_hpu()
    dist.init_process_group("hccl", rank=rank, world_size=world_size)
    torch.manual_seed(70)
    device = torch.device("hpu")
    data = automata(320)
    model = Automaton().to(device)
    # All cards begin with the weights of the first one.
    for parameter in model.parameters():
        dist.broadcast(parameter.data, src=0)
    sampler = DistributedSampler(data, num_replicas=world_size, rank=rank, shuffle=False)
    loader = DataLoader(data, batch_size=32 // world_size, sampler=sampler)
    train(model, loader, device, epochs=3)
    if rank == 0:
        torch.save(model.state_dict(), "automaton.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
