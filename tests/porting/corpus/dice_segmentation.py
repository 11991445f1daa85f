"""A small U-Net with a Dice loss written as a function."""
import logging

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split

logging.basicConfig(level=logging.INFO)


class DoubleConv(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.block = nn.Sequential(
            nn.Conv2d(inside, outside, 3, padding=1), nn.GroupNorm(2, outside), nn.ReLU(inplace=True),
            nn.Conv2d(outside, outside, 3, padding=1), nn.GroupNorm(2, outside), nn.ReLU(inplace=True))

    def forward(self, x):
        return self.block(x)


class UNet(nn.Module):
    def __init__(self, base=4):
        super().__init__()
        self.down = DoubleConv(1, base)
        self.middle = DoubleConv(base, 2 * base)
        self.up = nn.ConvTranspose2d(2 * base, base, 2, stride=2)
        self.last = DoubleConv(2 * base, base)
        self.out = nn.Conv2d(base, 1, 1)

    def forward(self, x):
        left = self.down(x)
        bottom = self.middle(F.max_pool2d(left, 2))
        return self.out(self.last(torch.cat([left, self.up(bottom)], dim=1)))


def dice_loss(logits, masks, smooth=1.0):
    probabilities = torch.sigmoid(logits)
    overlap = (probabilities * masks).sum((1, 2, 3))
    total = probabilities.sum((1, 2, 3)) + masks.sum((1, 2, 3))
    return 1 - ((2 * overlap + smooth) / (total + smooth)).mean()


def train_net(net, device, epochs=2, batch_size=4, learning_rate=1e-2):
    images = torch.randn(40, 1, 8, 8)
    masks = (F.avg_pool2d(images, 3, 1, 1) > 0).float()
    train, val = random_split(TensorDataset(images, masks), [32, 8])
    train_loader = DataLoader(train, shuffle=True, batch_size=batch_size)
    val_loader = DataLoader(val, shuffle=False, batch_size=batch_size)
    optimizer = torch.optim.RMSprop(net.parameters(), lr=learning_rate, weight_decay=1e-8, momentum=0.9)

    for epoch in range(1, epochs + 1):
        net.train()
        for image, mask in train_loader:
            image = image.to(device=device, dtype=torch.float32)
            mask = mask.to(device=device, dtype=torch.float32)
            masks_pred = net(image)
            loss = F.binary_cross_entropy_with_logits(masks_pred, mask)
            loss += dice_loss(masks_pred, mask)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        logging.info(f'epoch {epoch}: {loss.item():.4f}, validation {evaluate(net, val_loader, device):.4f}')


def evaluate(net, loader, device):
    net.eval()
    score = 0
    with torch.no_grad():
        for image, mask in loader:
            image, mask = image.to(device), mask.to(device)
            score += 1 - dice_loss(net(image), mask).item()
    return score / len(loader)


if __name__ == '__main__':
    torch.manual_seed(13)
    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
    logging.info(f'Using device {device}')
    net = UNet()
    net.to(device=device)
    train_net(net, device)
    torch.save(net.state_dict(), 'unet.pth')
