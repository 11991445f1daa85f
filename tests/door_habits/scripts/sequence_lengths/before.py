"""Sequences of several lengths."""

import torch
from torch import nn

torch.manual_seed(0)
batches = [(torch.randint(0, 20, (8, length)), torch.randint(0, 3, (8,))) for length in (5, 9, 5, 7, 9, 5)]


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.recurrent = nn.GRU(8, 8, batch_first=True)
        self.output = nn.Linear(8, 3)

    def forward(self, tokens):
        return self.output(self.recurrent(self.embedding(tokens))[0][:, -1])


model = Tagger()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()

for epoch in range(2):
    for inputs, labels in batches:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.4f}")
