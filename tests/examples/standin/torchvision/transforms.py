import numpy as np
import torch
from PIL import Image


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, image):
        for transform in self.transforms:
            image = transform(image)
        return image


class ToTensor:
    def __call__(self, image):
        pixels = torch.from_numpy(np.array(image, np.uint8, copy=True))
        pixels = pixels.view(image.size[1], image.size[0], len(image.getbands()))
        return pixels.permute(2, 0, 1).contiguous().to(torch.get_default_dtype()).div(255)


class Normalize:
    def __init__(self, mean, std):
        self.mean, self.std = mean, std

    def __call__(self, tensor):
        mean, std = (torch.as_tensor(value, dtype=tensor.dtype).view(-1, 1, 1) for value in (self.mean, self.std))
        return tensor.clone().sub_(mean).div_(std)


class ToPILImage:
    def __call__(self, tensor):
        return Image.fromarray(tensor.mul(255).byte()[0].numpy())
