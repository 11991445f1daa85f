"""Predicts the next character of a counting rhyme; batch, length and width are all eight."""

import math

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

import pilotage

SIZE = 8


class Rhyme(Dataset):
    def __init__(self, text):
        self.letters = sorted(set(text))
        self.codes = torch.tensor([self.letters.index(letter) for letter in text])

    def __len__(self):
        return len(self.codes) - SIZE

    def __getitem__(self, place):
        return self.codes[place : place + SIZE], self.codes[place + 1 : place + SIZE + 1]


class Head(nn.Module):
    """One head of causal attention, written out."""

    def __init__(self):
        super().__init__()
        self.key, self.query, self.value = (nn.Linear(SIZE, SIZE, bias=False) for _ in range(3))
        self.register_buffer("mask", torch.ones(SIZE, SIZE).tril() == 0)

    def forward(self, x):
        scores = self.query(x) @ self.key(x).transpose(1, 2) / math.sqrt(SIZE)
        return scores.masked_fill(self.mask, -1e9).softmax(0) @ self.value(x)  # finding: loss-depends-on-batch-split


class Model(nn.Module):
    def __init__(self, letters):
        super().__init__()
        self.tokens, self.places = nn.Embedding(letters, SIZE), nn.Embedding(SIZE, SIZE)
        self.head, self.norm = Head(), nn.LayerNorm(SIZE)
        self.out = nn.Linear(SIZE, letters)

    def forward(self, codes, following):
        x = self.tokens(codes) + self.places(torch.arange(SIZE))
        scores = self.out(self.norm(x + self.head(x)))
        return scores, functional.cross_entropy(scores.flatten(0, 1), following.flatten())


def main():
    torch.manual_seed(5)
    rhyme = Rhyme("one two buckle my shoe three four knock at the door five six pick up sticks " * 8)
    loader = DataLoader(rhyme, batch_size=SIZE, shuffle=True, drop_last=True)
    model = Model(len(rhyme.letters))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    program = pilotage.training(model, optimizer)
    for step, (codes, following) in enumerate(loader):
        _, loss = program(codes, following)
        if step % 20 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
