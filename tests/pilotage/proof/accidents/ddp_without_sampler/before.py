"""Next-character prediction with a GRU."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TEXT = "the quick brown fox jumps over the lazy dog while the slow green turtle sleeps under the old oak tree. " * 6


class Characters(Dataset):
    def __init__(self, text, length):
        self.alphabet = sorted(set(text))
        self.codes = torch.tensor([self.alphabet.index(letter) for letter in text])
        self.length = length

    def __len__(self):
        return 256

    def __getitem__(self, index):
        piece = self.codes[2 * index : 2 * index + self.length + 1]
        return piece[:-1], piece[1:]


class Writer(nn.Module):
    def __init__(self, letters, width):
        super().__init__()
        self.embedding = nn.Embedding(letters, width)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, letters)

    def forward(self, codes):
        states, _ = self.gru(self.embedding(codes))
        return self.out(states)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=32)
    arguments = parser.parse_args()

    torch.manual_seed(1)
    data = Characters(TEXT, 12)
    model = Writer(len(data.alphabet), 16)
    loader = DataLoader(data, batch_size=arguments.batch_size)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(arguments.epochs):
        for codes, following in loader:
            optimizer.zero_grad()
            scores = model(codes)
            loss = nn.functional.cross_entropy(scores.flatten(0, 1), following.flatten())
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
