"""A tiny transformer that sorts short lists of numbers."""

import torch
from torch import nn

import poptorch

NUMBERS, LENGTH, WIDTH = 10, 6, 16


class Sorter(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(NUMBERS, WIDTH)
        self.places = nn.Parameter(0.02 * torch.randn(LENGTH, WIDTH))
        self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.out = nn.Linear(WIDTH, NUMBERS)

    def forward(self, numbers, ordered):
        states = self.embedding(numbers) + self.places
        normed = self.norm1(states)
        states = states + self.attention(normed, normed, normed, need_weights=False)[0]
        states = states + self.feed(self.norm2(states))
        scores = self.out(states)
        return scores, nn.functional.cross_entropy(scores.flatten(0, 1), ordered.flatten())


class Lists(torch.utils.data.Dataset):
    def __init__(self, count):
        self.numbers = torch.randint(NUMBERS, (count, LENGTH), generator=torch.Generator().manual_seed(5))

    def __len__(self):
        return len(self.numbers)

    def __getitem__(self, index):
        return self.numbers[index], self.numbers[index].sort().values


def configure_optimizer(model):
    """Weight decay for matrices only."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    return poptorch.optim.AdamW(groups, lr=3e-3)  # finding: optimizer-unused


def main():
    torch.manual_seed(2)
    model = Sorter()
    configure_optimizer(model)
    options = poptorch.Options()
    loader = poptorch.DataLoader(options, Lists(256), batch_size=16)
    training_model = poptorch.trainingModel(model, options)
    for epoch in range(2):
        for numbers, ordered in loader:
            _, loss = training_model(numbers, ordered)
        print(f"epoch {epoch}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
