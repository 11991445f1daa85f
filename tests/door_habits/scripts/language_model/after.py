"""Tied weights, dropout and a loss over flattened scores."""

import torch
from torch import nn

import pilotage

torch.manual_seed(0)
batches = [(torch.randint(0, 20, (4, 6)), torch.randint(0, 20, (4, 6))) for _ in range(5)]


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.encoder = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
        self.output = nn.Linear(8, 20, bias=False)
        self.output.weight = self.embedding.weight

    def forward(self, tokens):
        return self.output(self.encoder(self.embedding(tokens)))


model = Tied()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()
step = pilotage.training(model, optimizer, loss=lambda s, t: criterion(s.flatten(0, 1), t.flatten()))

for _epoch in range(2):
    for inputs, labels in batches:
        _, loss = step(inputs, labels)
