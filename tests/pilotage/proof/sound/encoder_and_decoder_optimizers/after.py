"""Reverses short words with an encoder and a decoder, as one program; one optimizer with a group for each."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import pilotage

LETTERS, LENGTH, WIDTH = 12, 5, 24


def words(count):
    generator = torch.Generator().manual_seed(620)
    drawn = torch.randint(LETTERS, (count, LENGTH), generator=generator)
    return TensorDataset(drawn, drawn.flip(1))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(LETTERS, WIDTH)
        self.recurrent = nn.GRU(WIDTH, WIDTH, batch_first=True)

    def forward(self, word):
        return self.recurrent(self.letters(word))[1]


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(LETTERS + 1, WIDTH)
        self.recurrent = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.out = nn.Linear(WIDTH, LETTERS)

    def forward(self, state, target):
        start = torch.full((len(target), 1), LETTERS)
        output, _ = self.recurrent(self.letters(torch.cat([start, target[:, :-1]], dim=1)), state)
        return self.out(output)


class Reverser(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = Encoder(), Decoder()

    def forward(self, word, target):
        scores = self.decoder(self.encoder(word), target)
        return nn.functional.cross_entropy(scores.flatten(0, 1), target.flatten())


def main():
    torch.manual_seed(621)
    model = Reverser()
    groups = [{"params": model.encoder.parameters()}, {"params": model.decoder.parameters(), "lr": 0.005}]
    step = pilotage.training(model, torch.optim.Adam(groups, lr=0.01))
    loader = DataLoader(words(480), batch_size=16, shuffle=True)
    for epoch in range(3):
        total = sum(step(word, target).item() for word, target in loader)
        print(f"epoch {epoch}: {total / len(loader):.4f}")
    torch.save({"encoder": model.encoder.state_dict(), "decoder": model.decoder.state_dict()}, "reverser.pt")


if __name__ == "__main__":
    main()
