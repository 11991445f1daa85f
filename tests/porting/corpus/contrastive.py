"""Two views of each sample attract each other; the other samples of the batch repel."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Views(Dataset):
    def __init__(self, count):
        self.base = torch.randn(count, 10)
        self.noise = 0.1 * torch.randn(2, count, 10)

    def __len__(self):
        return len(self.base)

    def __getitem__(self, index):
        return self.base[index] + self.noise[0, index], self.base[index] + self.noise[1, index]


def nt_xent(first, second, temperature=0.5):
    both = F.normalize(torch.cat([first, second]), dim=1)
    similarity = both @ both.T / temperature
    count = first.shape[0]
    similarity = similarity - 1e9 * torch.eye(2 * count, device=similarity.device)
    positives = torch.cat([torch.arange(count, 2 * count), torch.arange(count)]).to(similarity.device)
    return F.cross_entropy(similarity, positives)


def main():
    torch.manual_seed(79)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = DataLoader(Views(64), batch_size=16, shuffle=True, drop_last=True)
    model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 6)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(2):
        for first, second in loader:
            first, second = first.to(device), second.to(device)
            optimizer.zero_grad()
            loss = nt_xent(model(first), model(second))
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
