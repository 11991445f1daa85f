"""Reverses short words with an encoder and a decoder; each has an optimizer of its own."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

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


def train_epoch(loader, encoder, decoder, encoder_optimizer, decoder_optimizer, criterion):
    total = 0.0
    for word, target in loader:
        encoder_optimizer.zero_grad()
        decoder_optimizer.zero_grad()
        scores = decoder(encoder(word), target)
        loss = criterion(scores.flatten(0, 1), target.flatten())
        loss.backward()
        encoder_optimizer.step()
        decoder_optimizer.step()
        total += loss.item()
    return total / len(loader)


def main():
    torch.manual_seed(621)
    encoder, decoder = Encoder(), Decoder()
    encoder_optimizer = torch.optim.Adam(encoder.parameters(), lr=0.01)
    decoder_optimizer = torch.optim.Adam(decoder.parameters(), lr=0.005)
    loader = DataLoader(words(480), batch_size=16, shuffle=True)
    for epoch in range(3):
        loss = train_epoch(loader, encoder, decoder, encoder_optimizer, decoder_optimizer, nn.CrossEntropyLoss())
        print(f"epoch {epoch}: {loss:.4f}")
    torch.save({"encoder": encoder.state_dict(), "decoder": decoder.state_dict()}, "reverser.pt")


if __name__ == "__main__":
    main()
