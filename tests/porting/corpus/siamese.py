"""Tells whether two drawings show the same thing: one network, two inputs."""
import argparse

import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, Dataset


class SiameseNetwork(nn.Module):
    def __init__(self):
        super(SiameseNetwork, self).__init__()
        self.body = nn.Sequential(nn.Linear(20, 16), nn.ReLU())
        self.fc = nn.Sequential(nn.Linear(32, 8), nn.ReLU(inplace=True), nn.Linear(8, 1))
        self.sigmoid = nn.Sigmoid()

    def forward(self, input1, input2):
        output1 = self.body(input1)
        output2 = self.body(input2)
        output = torch.cat((output1, output2), 1)
        return self.sigmoid(self.fc(output))


class APP_MATCHER(Dataset):
    def __init__(self, count):
        base = torch.randn(4, 20)
        self.left, self.right = torch.randint(4, (count,)), torch.randint(4, (count,))
        self.first = base[self.left] + 0.1 * torch.randn(count, 20)
        self.second = base[self.right] + 0.1 * torch.randn(count, 20)

    def __len__(self):
        return len(self.left)

    def __getitem__(self, index):
        target = (self.left[index] == self.right[index]).float()
        return self.first[index], self.second[index], target


def train(args, model, device, train_loader, optimizer, epoch):
    model.train()
    criterion = nn.BCELoss()

    for batch_idx, (images_1, images_2, targets) in enumerate(train_loader):
        images_1, images_2, targets = images_1.to(device), images_2.to(device), targets.to(device)
        optimizer.zero_grad()
        outputs = model(images_1, images_2).squeeze()
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            print(f'Train Epoch: {epoch} Loss: {loss.item():.6f}')


def test(model, device, test_loader):
    model.eval()
    test_loss = 0
    correct = 0
    criterion = nn.BCELoss()

    with torch.no_grad():
        for (images_1, images_2, targets) in test_loader:
            images_1, images_2, targets = images_1.to(device), images_2.to(device), targets.to(device)
            outputs = model(images_1, images_2).squeeze()
            test_loss += criterion(outputs, targets).sum().item()
            pred = torch.where(outputs > 0.5, 1, 0)
            correct += pred.eq(targets.view_as(pred)).sum().item()
    print(f'Test set: {test_loss:.4f} {correct}/{len(test_loader.dataset)}')


def main():
    parser = argparse.ArgumentParser(description='PyTorch Siamese network Example')
    parser.add_argument('--batch-size', type=int, default=16)
    parser.add_argument('--epochs', type=int, default=2)
    parser.add_argument('--lr', type=float, default=1e-2)
    parser.add_argument('--no-cuda', action='store_true', default=False)
    parser.add_argument('--log-interval', type=int, default=4)
    args = parser.parse_args()

    use_cuda = not args.no_cuda and torch.cuda.is_available()
    torch.manual_seed(1)
    if use_cuda:
        device = torch.device("cuda")
    else:
        device = torch.device("cpu")

    train_loader = DataLoader(APP_MATCHER(96), batch_size=args.batch_size, shuffle=True)
    test_loader = DataLoader(APP_MATCHER(32), batch_size=args.batch_size)

    model = SiameseNetwork().to(device)
    optimizer = optim.AdamW(model.parameters(), lr=args.lr)
    for epoch in range(1, args.epochs + 1):
        train(args, model, device, train_loader, optimizer, epoch)
        test(model, device, test_loader)


if __name__ == '__main__':
    main()
