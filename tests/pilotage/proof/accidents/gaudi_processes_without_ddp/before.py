"""Predicts the fate of small cellular automata."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CELLS, RULE = 16, 110


def automata(count):
    table = torch.tensor([(RULE >> number) & 1 for number in range(8)])
    cells = torch.randint(2, (count, CELLS))
    index = 4 * cells.roll(1, 1) + 2 * cells + cells.roll(-1, 1)
    return TensorDataset(cells.float(), table[index].float())


class Automaton(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(1, 8, 3, padding=1, padding_mode="circular")
        self.conv2 = nn.Conv1d(8, 1, 1)

    def forward(self, cells):
        return self.conv2(torch.relu(self.conv1(cells.unsqueeze(1)))).squeeze(1)


def train(model, loader, device, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(epochs):
        for cells, following in loader:
            cells, following = cells.to(device), following.to(device)
            optimizer.zero_grad()
            loss = criterion(model(cells), following)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")


def main():
    torch.manual_seed(70)
    device = torch.device("cpu")
    data = automata(320)
    model = Automaton().to(device)
    loader = DataLoader(data, batch_size=32)
    train(model, loader, device, epochs=3)
    torch.save(model.state_dict(), "automaton.pt")


if __name__ == "__main__":
    main()
