"""Continues noisy signals with an LSTM that keeps its state from batch to batch; the stream has no end."""

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

SIGNALS, LENGTH = 6, 10


class Signals(IterableDataset):
    """The next part of each signal, one signal after the other."""

    def __iter__(self):
        generator = torch.Generator().manual_seed(620)
        phase = 6 * torch.rand(SIGNALS, generator=generator)
        start = 0
        while True:
            time = 0.3 * torch.arange(start, start + LENGTH + 1)
            for number in range(SIGNALS):
                signal = torch.sin(time + phase[number]) + 0.1 * torch.randn(LENGTH + 1, generator=generator)
                yield signal[:-1, None], signal[1:, None]
            start += LENGTH


class Continuation(nn.Module):
    def __init__(self, hidden=12):
        super().__init__()
        self.hidden = hidden
        self.cells = nn.LSTM(1, hidden, num_layers=2, batch_first=True)
        self.last = nn.Linear(hidden, 1)

    def start(self):
        return torch.zeros(2, SIGNALS, self.hidden), torch.zeros(2, SIGNALS, self.hidden)

    def forward(self, signal, following, state, cell):
        found, (state, cell) = self.cells(signal, (state, cell))
        return nn.functional.mse_loss(self.last(found), following), state.detach(), cell.detach()


def train(model, updates):
    batches = iter(DataLoader(Signals(), batch_size=SIGNALS))
    optimizer = torch.optim.RMSprop(model.parameters(), lr=3e-3)
    state, cell = model.start()
    for update in range(updates):
        signal, following = next(batches)
        optimizer.zero_grad()
        loss, state, cell = model(signal, following, state, cell)
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.5)
        optimizer.step()
        if update % 10 == 0:
            print(f"update {update}: {loss.item():.5f}")


if __name__ == "__main__":
    torch.manual_seed(621)
    model = Continuation()
    train(model, updates=80)
    torch.save(model.state_dict(), "continuation.pt")
