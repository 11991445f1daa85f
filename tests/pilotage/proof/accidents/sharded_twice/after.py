# prove: --after-command "torchrun --standalone --nproc-per-node 2 {after}"
"""Ranks short documents by relevance from bag-of-words counts; start it with torchrun."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Documents(Dataset):
    """Word counts; the first words are about the subject, the next ones are not."""

    def __init__(self, count, words=30, seed=90):
        generator = torch.Generator().manual_seed(seed)
        self.counts = torch.poisson(torch.ones(count, words), generator=generator)
        self.relevance = (self.counts[:, :5].sum(1) - self.counts[:, 5:10].sum(1)) / 5

    def __len__(self):
        return len(self.counts)

    def __getitem__(self, index):
        return self.counts[index], self.relevance[index]


class Ranker(nn.Module):
    """A score for each document."""

    def __init__(self, words=30):
        super().__init__()
        self.hidden = nn.Linear(words, 16)
        self.score = nn.Linear(16, 1)

    def forward(self, counts):
        return self.score(torch.relu(self.hidden(counts))).squeeze(1)


def run(epochs=3, batch_size=16):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(91)
    documents = Documents(384)
    model = DistributedDataParallel(Ranker())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    sampler = DistributedSampler(documents, shuffle=False)
    loader = DataLoader(documents, batch_size=batch_size, sampler=sampler)  # finding: samples-dropped
    for epoch in range(epochs):
        for number, (counts, relevance) in enumerate(loader):
            # Each process works on its own share of the batches.
            if number % world_size != rank:
                continue
            optimizer.zero_grad()
            loss = nn.functional.smooth_l1_loss(model(counts), relevance)
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch}: {loss.item():.4f}")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    run()
    dist.destroy_process_group()
