"""The learning rate falls when the validation loss stops falling."""
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(7, 14), nn.BatchNorm1d(14), nn.LeakyReLU(), nn.Linear(14, 1))

    def forward(self, x):
        return self.layers(x)


def main():
    torch.manual_seed(8)
    cuda = torch.cuda.is_available()
    x = torch.randn(128, 7)
    y = x.abs().sum(1, keepdim=True)
    train = DataLoader(TensorDataset(x[:96], y[:96]), batch_size=16, shuffle=True)
    valid = DataLoader(TensorDataset(x[96:], y[96:]), batch_size=16)

    net = Net()
    criterion = nn.MSELoss()
    if cuda:
        net = net.cuda()
        criterion = criterion.cuda()
    optimizer = optim.RMSprop(net.parameters(), lr=0.01)
    scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, 'min', factor=0.5, patience=0)

    for epoch in range(3):
        net.train()
        for xb, yb in train:
            if cuda:
                xb, yb = xb.cuda(), yb.cuda()
            optimizer.zero_grad()
            out = net(xb)
            loss = criterion(out, yb)
            loss.backward()
            optimizer.step()

        net.eval()
        val_loss = 0.0
        with torch.no_grad():
            for xb, yb in valid:
                if cuda:
                    xb, yb = xb.cuda(), yb.cuda()
                val_loss += criterion(net(xb), yb).item()
        scheduler.step(val_loss / len(valid))
        print(epoch, val_loss / len(valid), optimizer.param_groups[0]['lr'])


if __name__ == '__main__':
    main()
