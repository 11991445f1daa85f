"""A language model whose batches are drawn in the loop, from the generator that dropout draws from too."""

import argparse

import torch
from torch import nn


class NextLetter(nn.Module):
    """Reads a few letters and gives scores for the next one."""

    def __init__(self, letters, context, width=8, dropout=0.2):
        super().__init__()
        self.embedding = nn.Embedding(letters, width)
        self.dropout = nn.Dropout(dropout)
        self.hidden = nn.Linear(context * width, 32)
        self.scores = nn.Linear(32, letters)

    def forward(self, letters):
        x = self.dropout(self.embedding(letters).flatten(1))
        return self.scores(torch.tanh(self.hidden(x)))


def get_batch(text, size, context):
    """Draws a batch at random places of the text."""
    starts = torch.randint(len(text) - context, (size,))
    inputs = torch.stack([text[i : i + context] for i in starts])
    targets = torch.stack([text[i + context] for i in starts])
    return inputs, targets


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--context", type=int, default=5)
    args = parser.parse_args()
    torch.manual_seed(4)
    text = torch.randint(0, 12, (400,))
    model = NextLetter(12, args.context)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(args.steps):
        inputs, targets = get_batch(text, args.batch_size, args.context)
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            print(f"{step + 1}: {loss.item():.3f}")
    torch.save(model.state_dict(), "letters.pt")


main()
