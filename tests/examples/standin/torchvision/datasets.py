import os
import sys
from pathlib import Path

from PIL import Image
from torch.utils.data import Dataset

sys.path.append(str(Path(__file__).parents[4]))
from examples.datasets.fashion_mnist import load


class FashionMNIST(Dataset):
    def __init__(self, root, train=True, transform=None, target_transform=None, download=False):
        splits = load("generated", limit=int(os.environ["STANDIN_IMAGES"]))
        pictures = splits.train if train else splits.test
        self.data, self.targets = pictures.images, pictures.labels
        self.transform, self.target_transform = transform, target_transform

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        if not 0 <= index < len(self):
            raise IndexError(index)
        image, target = Image.fromarray(self.data[index]), int(self.targets[index])
        image = self.transform(image) if self.transform else image
        return image, self.target_transform(target) if self.target_transform else target
