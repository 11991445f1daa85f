import torch
from torch.utils.data import DataLoader, TensorDataset


def make_dataset(count):
    images = torch.randn(count, 1, 8, 8)
    quadrants = images.reshape(count, 2, 4, 2, 4).abs().mean((2, 4)).flatten(1)
    return TensorDataset(images, quadrants.argmax(1))


def get_loaders(config):
    train_loader = DataLoader(make_dataset(96), batch_size=config.batch_size, shuffle=True)
    test_loader = DataLoader(make_dataset(32), batch_size=config.batch_size, shuffle=False)
    return train_loader, test_loader
